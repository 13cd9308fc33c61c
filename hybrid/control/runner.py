"""Running the loop until it is told to stop, is fenced off, or has taken the cluster down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from hybrid.control import log
from hybrid.control.desk import Desk
from hybrid.control.loop import Loop
from hybrid.control.mailbox import Mailbox
from hybrid.core.errors import FencedError, HybridError, LedgerError, LedgerLostError
from hybrid.core.ports import Clock

_log = log.get(__name__)

# While it starts, the loop looks more often than later: people are waiting.
_STARTING_TICK_S = 0.25

# Many waits that end one after the other must not make the loop tick without a pause.
_LEAST_SHARE = 0.1

# Time to put a ledger back that was moved away by mistake.
_LOST_S = 20.0


class Outcome(Enum):
    """Why the loop ended."""

    CLOSED = "closed"
    STOPPED = "stopped"
    FENCED = "fenced"
    LOST = "lost"


@dataclass
class Runner:
    """Ticks the loop, and turns signals into a clean end.

    Attributes:
        is_stop_asked: Set by `stop`, from a signal handler.
        is_fresh: This run started the head. Otherwise it took over a cluster that was up, work
            and all.
        before_tick: Housekeeping of the process; must not raise.
    """

    loop: Loop
    desk: Desk
    mailbox: Mailbox
    clock: Clock
    is_stop_asked: bool = field(default=False)
    is_fresh: bool = True
    before_tick: Callable[[], None] = field(default=lambda: None)
    _lost_since_s: float | None = None

    def stop(self) -> None:
        """Ask for the end; safe to call from a signal handler.

        What this run started and has not become ready is taken down again; any other cluster
        goes on without its controller.
        """
        self.is_stop_asked = True
        self.mailbox.ring()

    def run(self) -> Outcome:
        """Tick until the end, and return why it came."""
        while not self.loop.is_done:
            if self.is_stop_asked and not self._is_to_be_undone and not self.loop.mode.is_closing:
                return Outcome.STOPPED
            self.before_tick()
            started_s = self.clock.monotonic_s()
            if (outcome := self._tick()) is not None:
                return outcome
            spent_s = self.clock.monotonic_s() - started_s
            if not self.loop.is_done:
                self.mailbox.wait(max(0.0, self._rhythm_s() - spent_s))
        return Outcome.CLOSED

    @property
    def _is_to_be_undone(self) -> bool:
        return self.is_fresh and not self.loop.is_ready

    def _rhythm_s(self) -> float:
        """Return the time from the start of this tick to that of the next."""
        tick_s = self.loop.params.tick_s
        if not self.loop.is_ready:
            return min(tick_s, _STARTING_TICK_S)
        due_s, least_s = self.loop.due_s, _LEAST_SHARE * tick_s
        # A moment right after the next tick is waited for: that tick would come for nothing.
        if due_s is None or due_s > tick_s + least_s:
            return tick_s
        return max(due_s, least_s)

    def _tick(self) -> Outcome | None:
        self.desk.tick_started()
        try:
            if self.is_stop_asked and self._is_to_be_undone:
                self.desk.close_now("a signal during the start")
            self.mailbox.serve()
            self.loop.tick()
            self.desk.publish()
            self._lost_since_s = None
        except FencedError as error:
            _log.error("fenced", reason=str(error))
            return Outcome.FENCED
        except LedgerLostError as error:
            self._fail("ledger_lost", str(error))
            return Outcome.LOST if self._is_lost_for_good() else None
        except LedgerError as error:
            self._fail("ledger_failed", str(error))
        except HybridError as error:
            self._fail("tick_failed", str(error))
        except Exception as error:  # noqa: BLE001 - see _fail
            reason = f"a bug: {type(error).__name__}: {error}; see the controller's log"
            self._fail("tick_failed", reason, error=error)
        return None

    def _is_lost_for_good(self) -> bool:
        """Return whether the ledger is gone for so long that nobody puts it back.

        Without it nothing can be promised, not even that we are alone: another controller makes
        a new one, from what the clouds list.
        """
        now_s = self.clock.monotonic_s()
        if self._lost_since_s is None:
            self._lost_since_s = now_s
        return now_s - self._lost_since_s >= _LOST_S

    def _fail(self, event: str, reason: str, *, error: Exception | None = None) -> None:
        """Note a failed tick; the next one starts from what is true then.

        Also after a bug: a controller that ends for it lets leases run out, and the next one
        would meet the same bug.
        """
        if self.desk.fault != reason:
            _log.error(event, reason=reason, exc_info=error)
        self.desk.tick_failed(reason)

"""Telling the controller what this node does and why it cannot. Best effort: it stops nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hybrid.node.folder import Phase
from hybrid.node.joining import Answer, Attempt, tell
from hybrid.node.orders import Join

SETTLED_S = 1.0
"""How long a phase must last to be worth a message. One that lasts for ever is told at once."""

REPEAT_S = 60.0
"""How often a broken node says so again: a controller that began anew has forgotten it."""

_AGAIN_S = (2.0, 5.0, 10.0, 30.0, 60.0)  # then always the last
_BROKEN = frozenset({Phase.FAILED, Phase.EXITED})


class Reporter:
    """Sends the newest state only, one message at a time, from a child process."""

    def __init__(
        self,
        join: Join | None,
        *,
        start: Callable[[Callable[[], Answer]], Attempt] = Attempt,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the join token: its file goes away once it was traded.

        Args:
            join: Where to; `None` for nowhere.
            start: Sends a message without waiting for the answer.
            monotonic_s: The clock that does not jump.
        """
        self._join = join
        self._join_token = ""
        if join is not None:
            with suppress(OSError):
                self._join_token = join.join_token_file.read_text().strip()
        self._start = start
        self._monotonic_s = monotonic_s
        self._state: tuple[Phase, str] | None = None
        self._sent: tuple[Phase, str] | None = None
        self._attempt: Attempt | None = None
        self._due_s: float | None = None
        self._failed_count = 0

    def say(self, phase: Phase, problem: str) -> None:
        """Take note of the node's state."""
        if (phase, problem) == self._state or not self._join_token:
            return
        self._state = phase, problem
        self._failed_count = 0
        self._due_s = self._monotonic_s() + (0.0 if phase in _BROKEN else SETTLED_S)

    def step(self) -> None:
        """Do what is due. Never waits and never raises."""
        if self._attempt is not None:
            self._hear(self._attempt)
        elif self._due_s is not None and self._monotonic_s() >= self._due_s:
            self._send()

    def _send(self) -> None:
        assert self._join is not None  # noqa: S101  # for the type checker
        assert self._state is not None  # noqa: S101  # for the type checker
        self._sent = phase, problem = self._state
        try:
            self._attempt = self._start(
                partial(tell, self._join, self._join_token, phase=phase, problem=problem)
            )
        except OSError:  # no process or descriptor is left
            self._try_again()

    def _hear(self, attempt: Attempt) -> None:
        answer = attempt.answer()
        if answer is None:
            return
        self._attempt = None
        if self._sent != self._state:
            return  # it is due already
        if answer.problem and not answer.is_final:
            self._try_again()
        elif self._state is not None and self._state[0] in _BROKEN and not answer.is_final:
            self._due_s = self._monotonic_s() + REPEAT_S
        else:
            self._due_s = None

    def _try_again(self) -> None:
        delay_s = _AGAIN_S[min(self._failed_count, len(_AGAIN_S) - 1)]
        self._failed_count += 1
        self._due_s = self._monotonic_s() + delay_s

"""The cloud's word that it takes this machine back, and asking Ray to empty the node before.

The watcher of the cloud's metadata, which is in the machine's user data, writes one line into
the file `notice` of the node's folder: `1790000000 aws-terminate`, the deadline in seconds since
the epoch and who says so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ATTEMPT_S = 20.0
"""How long one `ray drain-node` may take. It takes 2 s, most of it to import Ray."""

AGAIN_S = 1.0
LEAST_WINDOW_S = 30.0
"""How long it is tried at least: a wrong clock must not make a notice look like an old one."""

_LINE = re.compile(rb"([0-9]{10})(?:\.[0-9]{1,6})? ([a-z][a-z0-9-]{0,31})\n?")
_NODE_ID = re.compile(r"[0-9a-f]{56}")
_OPTION = "--node_id="


@dataclass(frozen=True)
class Notice:
    """The machine is taken back.

    Attributes:
        at_s: When, in seconds since the epoch, by this machine's clock.
        origin: Who says so, one word.
    """

    at_s: float
    origin: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at_s))
        return f"the cloud takes this machine back at {at} ({self.origin})"


class LeaseEnd(Notice):
    """Nobody renews the machine's lease; not a notice of a cloud's, but obeyed in the same way."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at_s))
        return f"nobody renewed the lease of this machine; it ends at {at}"


def read(path: Path) -> Notice | None:
    """Return the notice; `None` when there is none, or the file holds anything else."""
    try:
        with path.open("rb") as file:
            match = _LINE.fullmatch(file.read(100))
    except OSError:
        return None
    return Notice(float(match[1]), match[2].decode()) if match else None


def node_id(raylet_pid: int) -> str:
    """Return Ray's id of the node, as its raylet was told; `""` when that cannot be read."""
    try:
        words = Path(f"/proc/{raylet_pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    for word in words.split("\0"):
        if word.startswith(_OPTION) and _NODE_ID.fullmatch(word.removeprefix(_OPTION)):
            return word.removeprefix(_OPTION)
    return ""


def fill(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the command with each `{name}` of `values` replaced, in one pass."""
    place = re.compile("|".join(re.escape(f"{{{name}}}") for name in values))
    return [place.sub(lambda found: values[found[0][1:-1]], word) for word in command]


class Draining:
    """Asks Ray to drain this node: in a child with a time limit, again when it fails.

    It never waits: `step` is called once a second, and says what is true now in `problem`.

    Attributes:
        failed_count: Attempts that failed so far.
    """

    def __init__(
        self,
        notice: Notice,
        command: Sequence[str],
        *,
        raylet_pid: int,
        start: Callable[[list[str]], int],
        end: Callable[[int], None],
        last_words: Callable[[], str],
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the first attempt at once.

        Args:
            notice: Why.
            command: With places for `{node_id}`, `{message}` and `{left_s}`.
            raylet_pid: Of this node.
            start: Runs a command and returns its process id; raises `OSError`.
            end: Kills such a process.
            last_words: What the last one wrote.
            wall_s: The wall clock, read once.
            monotonic_s: The clock that does not jump.
        """
        self._notice = notice
        self._command = command
        self._raylet_pid = raylet_pid
        self._start = start
        self._end = end
        self._last_words = last_words
        self._monotonic_s = monotonic_s
        self._deadline_s = monotonic_s() + (notice.at_s - wall_s())
        self._give_up_s = max(self._deadline_s, monotonic_s() + LEAST_WINDOW_S)
        self._next_s = monotonic_s()
        self._limit_s = 0.0
        self._pid: int | None = None
        self.failed_count = 0
        self._is_over = False
        self._trouble = ""
        self._outcome = "Ray is asked to drain the node"

    @property
    def problem(self) -> str:
        """What is to be said about the node."""
        return f"{self._notice}; {self._outcome}"

    def step(self, exit_codes: Mapping[int, int]) -> None:
        """Do what is due, given how children of this process have ended."""
        now_s = self._monotonic_s()
        if self._is_over:
            return
        if self._pid is not None:
            self._look(exit_codes, now_s)
        elif now_s >= self._give_up_s:
            self._is_over = True
            self._outcome = f"Ray could not be asked to drain the node: {self._trouble}"
        elif now_s >= self._next_s:
            self._try(now_s)

    def _try(self, now_s: float) -> None:
        name = node_id(self._raylet_pid)
        if not name:
            self._fail(f"the raylet (pid {self._raylet_pid}) does not say its node's id", now_s)
            return
        # Ray takes a deadline of 0 for none.
        left_s = max(1, int(self._deadline_s - now_s))
        values = {"node_id": name, "message": str(self._notice), "left_s": str(left_s)}
        try:
            self._pid = self._start(fill(self._command, values))
        except OSError as err:
            self._fail(str(err), now_s)
        self._limit_s = now_s + ATTEMPT_S

    def _look(self, exit_codes: Mapping[int, int], now_s: float) -> None:
        assert self._pid is not None  # noqa: S101  # for the type checker
        code = exit_codes.get(self._pid)
        if code == 0:
            self._is_over = True
            self._outcome = "Ray drains the node: running work goes on until then, no other comes"
        elif code is not None:
            self._fail(f"`ray drain-node` failed; its last words: {self._last_words()}", now_s)
        elif now_s >= self._limit_s:
            self._end(self._pid)
            self._fail(f"`ray drain-node` did not finish in {ATTEMPT_S:g} s", now_s)

    def _fail(self, trouble: str, now_s: float) -> None:
        self._pid = None
        self.failed_count += 1
        self._next_s = now_s + AGAIN_S
        self._trouble = trouble
        self._outcome = f"Ray was not asked to drain the node yet: {trouble}"

"""How many requests a service gets, window by window: what an inference service is simulated on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybrid.sim.traces.collecting import LONGEST_S
from hybrid.sim.traces.csvfile import plain, stem, write_table
from hybrid.sim.traces.reading import (
    BadLineError,
    OnPart,
    Table,
    Tally,
    TraceError,
    number,
)
from hybrid.sim.traces.trace import Skipped

COLUMNS = ("start_s", "length_s", "requests_per_s", "interarrival_cv")
_HIGHEST_PER_S = 1e9
"""No service gets more; a larger number is another one."""


@dataclass(frozen=True, slots=True)
class RateWindow:
    """A span of time with one mean rate.

    Attributes:
        start_s: From the start of the trace.
        length_s: How long it is, more than 0.
        requests_per_s: The mean over it, 0 or more.
        interarrival_cv: Coefficient of variation of the times between requests: 1 is Poisson, 0
            says nothing came, or too little to tell.
    """

    start_s: float
    length_s: float
    requests_per_s: float
    interarrival_cv: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what no reader may let through.

        Raises:
            ValueError: A number is out of its bounds or not finite.
        """
        if not (0.0 <= self.start_s < math.inf and 0.0 < self.length_s < math.inf):
            raise ValueError(f"no window of {self.length_s} s from {self.start_s} s on")
        if not (0.0 <= self.requests_per_s < math.inf and 0.0 <= self.interarrival_cv < math.inf):
            raise ValueError(f"window at {self.start_s} s: rate or variation below 0")


@dataclass(frozen=True, slots=True)
class RateTrace:
    """Windows one after the other; where none is, nothing is known.

    Attributes:
        name: What people call it.
        windows: Sorted, and none reaches into the next.
        skipped: What of its source was not taken over as it stood, by reason.
    """

    name: str
    windows: tuple[RateWindow, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def end_s(self) -> float:
        """The end of the last window; 0 without any."""
        return self.windows[-1].start_s + self.windows[-1].length_s if self.windows else 0.0

    @property
    def mean_requests_per_s(self) -> float:
        """The mean over all windows; 0 without any."""
        length_s = math.fsum(window.length_s for window in self.windows)
        requests = math.fsum(window.length_s * window.requests_per_s for window in self.windows)
        return requests / length_s if length_s else 0.0


def ordered(name: str, file: str, found: list[tuple[int, RateWindow]], tally: Tally) -> RateTrace:
    """Return a trace of windows with their lines, in any order.

    One that reaches into the one before is counted and left out.

    Raises:
        TraceError: There is none, or, when strict, something is wrong.
    """
    windows: list[RateWindow] = []
    last_line = 0
    for line, window in sorted(found, key=lambda item: (item[1].start_s, item[0])):
        end_s = windows[-1].start_s + windows[-1].length_s if windows else 0.0
        if window.start_s < end_s - 1e-6:
            tally.skip(line, "reaches into another window", str(window.start_s))
            continue
        if line < last_line:
            tally.keep(line, "earlier than the line before; sorted", str(window.start_s))
        last_line = line
        windows.append(window)
    if not windows:
        reasons = "; ".join(f"{each.count} x {each.reason}" for each in tally.result())
        raise TraceError(f"{file} has no window that can be used ({reasons or 'no lines'})")
    return RateTrace(name, tuple(windows), tally.result())


def read_rates(
    path: Path, *, name: str = "", is_strict: bool = False, on_part: OnPart | None = None
) -> RateTrace:
    """Return the rates in a file of ours.

    Raises:
        TraceError: The file cannot be used.
    """
    table = Table(path, on_part=on_part)
    table.form(COLUMNS)
    tally = Tally(str(path), is_strict=is_strict)
    found = list(table.each(_window, tally))
    return ordered(name or stem(path), str(path), found, tally)


def _window(_line: int, cells: Mapping[str, str]) -> RateWindow:
    return window_of(*(number(cells[column], column) for column in COLUMNS))


def window_of(start_s: float, length_s: float, rate: float, cv: float) -> RateWindow:
    """Return a window of numbers as they stand in a file.

    Raises:
        BadLineError: One of them is out of bounds.
    """
    if start_s + length_s > LONGEST_S or rate > _HIGHEST_PER_S or cv > _HIGHEST_PER_S:
        raise BadLineError("a number is too large; in other units?", f"{start_s:g}, {rate:g}")
    try:
        return RateWindow(start_s, length_s, rate, cv)
    except ValueError:
        raise BadLineError("a number is below 0, or the window has no length") from None


def write_rates(trace: RateTrace, path: Path) -> None:
    """Write rates, gzip where the name ends in `.gz`.

    Raises:
        TraceError: The file cannot be written.
    """
    write_table(
        path,
        COLUMNS,
        (
            tuple(map(plain, (w.start_s, w.length_s, w.requests_per_s, w.interarrival_cv)))
            for w in trace.windows
        ),
    )

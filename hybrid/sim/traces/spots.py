"""Where and when spot instances could be had: what the simulator replays as preemptions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
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
    whole,
)
from hybrid.sim.traces.trace import Skipped

COLUMNS = ("zone", "start_s", "end_s", "available")


@dataclass(frozen=True, slots=True)
class SpotSpan:
    """A time during which a zone had so many.

    Attributes:
        start_s: From the start of the trace.
        end_s: Where the next begins, later than `start_s`.
        available: Instances that could be had, 0 or more; no more were asked for than the
            source's experiment did, often 1.
    """

    start_s: float
    end_s: float
    available: int


@dataclass(frozen=True, slots=True)
class SpotZone:
    """What a zone had, in the order of time.

    Attributes:
        zone: Its name, such as `us-west-2a`.
        spans: None reaches into the next; neighbours differ.
    """

    zone: str
    spans: tuple[SpotSpan, ...]

    def available_at(self, at_s: float) -> int | None:
        """Return how many could be had at a time; `None` where nothing is known."""
        for span in self.spans:
            if span.start_s <= at_s < span.end_s:
                return span.available
        return None

    @property
    def available_ratio(self) -> float:
        """Share of the known time in which any could be had."""
        known_s = math.fsum(span.end_s - span.start_s for span in self.spans)
        had_s = math.fsum(span.end_s - span.start_s for span in self.spans if span.available)
        return had_s / known_s if known_s else 0.0


@dataclass(frozen=True, slots=True)
class SpotTrace:
    """Zones by name.

    Attributes:
        name: What people call it.
        zones: Sorted by name.
        skipped: What of its source was not taken over as it stood, by reason.
    """

    name: str
    zones: tuple[SpotZone, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def end_s(self) -> float:
        """The end of the last span; 0 without any."""
        return max((zone.spans[-1].end_s for zone in self.zones), default=0.0)


def zone_of(zone: str, step_s: float, runs: Iterable[tuple[int, int]]) -> SpotZone:
    """Return a zone of run lengths.

    Args:
        zone: Its name.
        step_s: Length of a tick.
        runs: How many could be had, and for how many ticks.
    """
    spans: list[SpotSpan] = []
    tick = 0
    for available, ticks in runs:
        if ticks <= 0:
            continue
        start_s, tick = tick * step_s, tick + ticks
        if spans and spans[-1].available == available:
            start_s = spans.pop().start_s
        spans.append(SpotSpan(start_s, tick * step_s, available))
    return SpotZone(zone, tuple(spans))


def read_spots(
    path: Path, *, name: str = "", is_strict: bool = False, on_part: OnPart | None = None
) -> SpotTrace:
    """Return the zones in a file of ours.

    Raises:
        TraceError: The file cannot be used.
    """
    table = Table(path, on_part=on_part)
    table.form(COLUMNS)
    tally = Tally(str(path), is_strict=is_strict)
    found = sorted(
        ((zone, span, line) for line, (zone, span) in table.each(_span, tally)),
        key=lambda item: (item[0], item[1].start_s),
    )
    zones = []
    for zone, items in groupby(found, key=lambda item: item[0]):
        spans = [(span, line) for _, span, line in items]
        for (before, _), (after, line) in pairwise(spans):
            if after.start_s < before.end_s:
                raise TraceError(f"{path}, line {line}: reaches into another span of {zone}")
        zones.append(SpotZone(zone, tuple(span for span, _ in spans)))
    if not zones:
        raise TraceError(f"{path} has no zone that can be used")
    return SpotTrace(name or stem(path), tuple(zones), tally.result())


def _span(_line: int, cells: Mapping[str, str]) -> tuple[str, SpotSpan]:
    span = SpotSpan(
        number(cells["start_s"], "start_s"),
        number(cells["end_s"], "end_s"),
        whole(cells["available"], "available"),
    )
    if span.start_s < 0 or span.end_s <= span.start_s or span.available < 0:
        raise BadLineError("a number is below 0, or the span has no length")
    if span.end_s > LONGEST_S:
        raise BadLineError("a number is too large; in other units?", cells["end_s"])
    return cells["zone"].strip(), span


def write_spots(trace: SpotTrace, path: Path) -> None:
    """Write zones, gzip where the name ends in `.gz`.

    Raises:
        TraceError: The file cannot be written.
    """
    write_table(
        path,
        COLUMNS,
        (
            (zone.zone, plain(span.start_s), plain(span.end_s), str(span.available))
            for zone in trace.zones
            for span in zone.spans
        ),
    )

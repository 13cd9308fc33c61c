"""What it takes to ship a job's data to where the job could run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

HOME = "onprem"
CLOUD = "cloud"
"""Any rented place that has none of the data."""

_BITS_PER_GB = 8e9


@dataclass(frozen=True)
class Entry:
    """Something that a job reads.

    Attributes:
        size_gb: In GB (10^9 bytes); `None` when nobody knows.
        place: Where it lies: `onprem`, a provider such as `aws`, or `aws/us-east-1`.
    """

    url: str
    size_gb: float | None
    place: str = HOME


@dataclass(frozen=True)
class Link:
    """The way from one place to another.

    Attributes:
        mbit_per_s: How fast; `None` when not known.
        usd_per_gb: What leaving costs.
    """

    mbit_per_s: float | None
    usd_per_gb: float


@dataclass(frozen=True)
class Links:
    """All ways.

    Attributes:
        mbit_per_s: Of each pair of places that has no entry of its own; `None`: not known.
        usd_per_gb: What leaving a cloud costs, where no entry says so. Leaving home is free.
        pairs: By (from, to). An entry for a provider holds for its regions too.
    """

    mbit_per_s: float | None = None
    usd_per_gb: float = 0.09
    pairs: Mapping[tuple[str, str], Link] = field(default_factory=dict)

    def between(self, start: str, end: str) -> Link:
        """Return the way between two places, by the entry that names them most exactly."""
        for pair in ((s, e) for s in _names(start) for e in _names(end)):
            if pair in self.pairs:
                return self.pairs[pair]
        return Link(self.mbit_per_s, 0.0 if start == HOME else self.usd_per_gb)


@dataclass(frozen=True)
class Shipment:
    """All data of a job, in one place.

    Attributes:
        seconds: One entry after the other; `None` when a size or a speed is not known.
        usd: Prices of leaving; `None` when a size that has a price is not known.
        unknown: What is not known, in words.
    """

    place: str
    seconds: float | None
    usd: float | None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether to go out with this data.

    Attributes:
        shipments: One for each place, in the order asked.
        best: The place out of home that has the data soonest; `None` if not known for any.
        is_burst: Whether going out is faster than waiting for home.
        why: In one sentence.
    """

    shipments: tuple[Shipment, ...]
    best: Shipment | None
    is_burst: bool
    why: str


def ship(entries: Iterable[Entry], place: str, links: Links) -> Shipment:
    """Return what it takes to bring all entries to a place."""
    seconds, usd = 0.0, 0.0
    slow: list[str] = []
    dear: list[str] = []
    for entry in entries:
        if _is_in(entry.place, place):
            continue
        link = links.between(entry.place, place)
        if entry.size_gb is None:
            slow.append(f"the size of {entry.url}")
            dear += [f"the size of {entry.url}"] if link.usd_per_gb else []
            continue
        usd += entry.size_gb * link.usd_per_gb
        if link.mbit_per_s:
            seconds += entry.size_gb * _BITS_PER_GB / (link.mbit_per_s * 1e6)
        elif entry.size_gb:
            slow.append(f"the speed from {entry.place} to {place}")
    unknown = tuple(dict.fromkeys(slow + dear))
    return Shipment(place, None if slow else seconds, None if dear else usd, unknown)


def judge(
    entries: Iterable[Entry], places: Iterable[str], links: Links, wait_s: float | None
) -> Verdict:
    """Compare shipping with waiting.

    Args:
        entries: The data of the job.
        places: Where it could run.
        links: Speeds and prices.
        wait_s: How long home probably needs until it has room; `None` when not known.
    """
    data = tuple(entries)
    shipments = tuple(ship(data, place, links) for place in places)
    out = [s for s in shipments if s.place != HOME]
    timed = [(s.seconds, s.place, s) for s in out if s.seconds is not None]
    if not out:
        return Verdict(shipments, None, is_burst=False, why="no place out of home is open to it")
    if not timed:
        what = " and ".join(dict.fromkeys(word for s in out for word in s.unknown))
        why = f"stays home until its last moment: {what} is not known"
        return Verdict(shipments, None, is_burst=False, why=why)
    seconds, place, best = min(timed, key=lambda one: one[:2])
    ships = f"its data takes {seconds:.0f} s to {place}"
    if wait_s is None:
        why = f"may go out: {ships}, and how long home needs is not known"
        return Verdict(shipments, best, is_burst=True, why=why)
    if seconds > wait_s:
        why = f"stays home until its last moment: {ships}, and home has room in {wait_s:.0f} s"
        return Verdict(shipments, best, is_burst=False, why=why)
    why = f"may go out: {ships}, and home has room only in {wait_s:.0f} s"
    return Verdict(shipments, best, is_burst=True, why=why)


def _is_in(data: str, place: str) -> bool:
    # Data said to be with a provider, in no region, is taken to be in none of them.
    return data == place


def _names(place: str) -> tuple[str, ...]:
    provider = place.partition("/")[0]
    if place == HOME:
        return (HOME,)
    return tuple(dict.fromkeys((place, provider, CLOUD)))

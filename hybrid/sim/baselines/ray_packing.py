"""How Ray's autoscaler chooses nodes: it fills each candidate, and takes the one it fills best.

`ResourceDemandScheduler` of Ray 2.60 sorts requests in descending order. Of the nodes that are
there, and then of the types that can be launched, it fills a copy of each with what fits, in that
order, and takes the one with the highest score, until nothing fits anywhere. With GPUs as the
only resource the score is `total * utilisation ** 3`. So many small requests share a large node,
although a node of their own size would do.

A test runs Ray's scheduler on the same requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Room(NamedTuple):
    """A node that is there or comes: its GPUs, and how many of them are free."""

    total: float
    free: float


def rays_choice(
    requests: Iterable[float], there: Iterable[Room], sizes: Sequence[float]
) -> list[float]:
    """Return the sizes of the nodes that Ray would launch.

    Args:
        requests: GPUs of each pending request; nothing else is asked for.
        there: Nodes that are there or come.
        sizes: GPUs of the types that can be launched, in the order of Ray's configuration,
            which decides between equal scores.
    """
    left: dict[float, int] = {}
    for gpus in sorted(requests, reverse=True):
        left[gpus] = left.get(gpus, 0) + 1
    count_by_room: dict[Room, int] = {}
    for room in there:
        count_by_room[room] = count_by_room.get(room, 0) + 1
    while left and (found := _best(count_by_room, left)):
        _take(left, found.filled)
        count_by_room[found.room] -= 1
        if not count_by_room[found.room]:
            del count_by_room[found.room]
    new = [Room(size, size) for size in sizes]
    launched = []
    while left and (found := _best(new, left)):
        _take(left, found.filled)
        launched.append(found.room.total)
    return launched


class _Filled(NamedTuple):
    room: Room
    filled: dict[float, int]
    score: float


def _best(rooms: Iterable[Room], left: dict[float, int]) -> _Filled | None:
    best: _Filled | None = None
    for room in rooms:
        found = _fill(room, left)
        if found.filled and (best is None or found.score > best.score):
            best = found
    return best


def _fill(room: Room, left: dict[float, int]) -> _Filled:
    free, filled = room.free, {}
    # The dictionary is in descending order, since it was filled so and is only taken from.
    for gpus, count in left.items():
        fitting = min(count, int(free // gpus))
        if fitting:
            filled[gpus] = fitting
            free -= fitting * gpus
    used = (room.total - free) / room.total
    return _Filled(room, filled, room.total * used**3)


def _take(left: dict[float, int], filled: dict[float, int]) -> None:
    for gpus, count in filled.items():
        left[gpus] -= count
        if not left[gpus]:
            del left[gpus]

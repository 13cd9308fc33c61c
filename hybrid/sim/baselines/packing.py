"""Packing what waits onto rented nodes that are free or coming, and what is missing then."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from hybrid.core.models import Offer
from hybrid.core.models.work import JobView
from hybrid.sim.baselines.seen import Seen, smallest


def missing_nodes(
    seen: Seen, size_of: Callable[[float], Offer | None], *, is_shared: bool
) -> list[Offer]:
    """Return the nodes to launch for all that waits, the largest jobs first.

    Each piece of a job (a whole node of it, or its rest) goes to the fullest node that holds it,
    of those that are free or boot. For what finds none, a node is launched.

    Args:
        seen: One look.
        size_of: The node for so many GPUs; `None` where none can be rented.
        is_shared: Whether later pieces may use what a new node has left.
    """
    free = [node.available.get("GPU", 0.0) for node in seen.ready]
    room = sorted([gpus for gpus in free if gpus > 0] + [float(g) for g in seen.coming_gpus])
    missing: list[Offer] = []
    for gpus in pieces(seen.waiting):
        at = bisect_left(room, gpus)
        if at < len(room):
            left = room.pop(at) - gpus
        else:
            offer = size_of(gpus)
            if offer is None:
                continue
            missing.append(offer)
            left = offer.gpu_count - gpus if is_shared else 0.0
        if left > 0:
            insort(room, left)
    return missing


def pieces(waiting: Iterable[JobView]) -> list[float]:
    """Return the GPUs of each piece of each job, those of the largest jobs first."""
    ordered = sorted(waiting, key=lambda job: (-job.gpus, job.submitted_at_s, job.job_id))
    return [gpus for job in ordered for gpus in job.sizes]


def job_sized(offers: tuple[Offer, ...]) -> Callable[[float], Offer | None]:
    """Return a rule that takes the smallest offer that is large enough."""
    found: dict[float, Offer | None] = {}

    def size_of(gpus: float) -> Offer | None:
        if gpus not in found:
            found[gpus] = smallest(offers, gpus)
        return found[gpus]

    return size_of

"""Local room in one piece: small jobs move together so that a larger one fits at home."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.models import Reason
from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.jobs.board import Nodes
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.words import plural


@dataclass(frozen=True)
class Packing:
    """Jobs that leave one node, and where each goes."""

    node_id: str
    moves: tuple[tuple[JobView, str], ...]


def pack_for(draft: Draft, job: JobView) -> bool:
    """Move jobs at home so that `job` fits there, or do nothing.

    Returns:
        Whether it fits now.
    """
    home = draft.board.home
    if job.gpus < 2 or home.free_gpus < job.gpus:
        return False
    # What failed once is not tried again for each equal job: the plan only fills up.
    if job.kind in draft.failed_packs or draft.stops_left <= 0:
        return False
    draft.failed_packs.add(job.kind)
    movable = _movable(draft)
    if not movable:
        return False
    trial = home.copy()
    planned: list[tuple[JobView, str]] = []
    kept: set[str] = set()
    for size in job.sizes:
        ready = _whole(trial, size, kept)
        if ready is not None:
            kept.add(ready)
            continue
        packing = _cheapest(size, trial, movable, kept)
        if packing is None:
            return False
        kept.add(packing.node_id)
        movable.pop(packing.node_id, None)
        for mover, to in packing.moves:
            trial.give(mover, mover.slots)
            trial.take(mover, (Slot(to, mover.gpus),))
            planned.append((mover, to))
    if trial.fit(job) is None or len(planned) > draft.stops_left:
        return False
    draft.failed_packs.discard(job.kind)
    for mover, to in planned:
        reason = Reason(
            code="pack",
            message=f"moves to another on-prem node, so that {plural(job.gpus, 'GPU')} are free "
            f"in one piece for {job.job_id}",
            facts={"gpus": mover.gpus, "for_gpus": job.gpus, "for_job": job.job_id},
        )
        draft.move(mover, (Slot(to, mover.gpus),), "pack", reason)
    return bool(planned)


def _movable(draft: Draft) -> dict[str, list[JobView]]:
    """Return the jobs that may be moved, by their node, the largest first."""
    found: dict[str, list[JobView]] = {}
    for job in draft.movable:
        if job.job_id in draft.at_home:
            found.setdefault(job.slots[0].node_id, []).append(job)
    return found


def _whole(nodes: Nodes, size: float, kept: set[str]) -> str | None:
    for free in nodes.levels():
        if free >= size:
            for node_id in nodes.at(free):
                if node_id not in kept:
                    return node_id
    return None


def _cheapest(
    size: float, nodes: Nodes, movable: dict[str, list[JobView]], kept: set[str]
) -> Packing | None:
    """Return the node that can be emptied for `size` GPUs by moving the fewest of them."""
    best: tuple[float, str, Packing] | None = None
    for node_id in sorted(movable):
        free = nodes.free[node_id]
        need = size - free
        if need <= 0 or node_id in kept or (best and need >= best[0]):
            continue
        movers = _choose(movable[node_id], need)
        moved = sum(job.gpus for job in movers or ())
        if movers is None or (best and moved >= best[0]):
            continue
        moves = _holes(movers, node_id, nodes, kept)
        if moves is not None:
            best = moved, node_id, Packing(node_id, moves)
    return best[2] if best else None


def _choose(jobs: list[JobView], need: float) -> list[JobView] | None:
    """Return jobs whose GPUs reach `need`: the largest that fit it, then one for the rest.

    Args:
        jobs: The largest first.
        need: GPUs.
    """
    if sum(job.gpus for job in jobs) < need:
        return None
    chosen, left = [], need
    for job in jobs:
        if job.gpus <= left:
            chosen.append(job)
            left -= job.gpus
    if left > 0:
        rest = [job for job in jobs if job not in chosen and job.gpus >= left]
        if not rest:
            return None
        chosen.append(rest[-1])
    return chosen


def _holes(
    movers: list[JobView], from_id: str, nodes: Nodes, kept: set[str]
) -> tuple[tuple[JobView, str], ...] | None:
    """Return a node for each mover, the fullest that holds it, or `None`."""
    free = {n: f for n, f in nodes.free.items() if f > 0 and n != from_id and n not in kept}
    moves = []
    for job in sorted(movers, key=lambda job: (-job.gpus, job.job_id)):
        piece = job.pieces[0]
        fitting = [n for n, f in free.items() if f >= job.gpus and nodes.admits(piece, n)]
        if not fitting:
            return None
        to = min(fitting, key=lambda n: (free[n], n))
        free[to] -= job.gpus
        moves.append((job, to))
    return tuple(moves)

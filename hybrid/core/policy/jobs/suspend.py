"""Room at home from slack: running jobs that can be late for a while wait in the queue instead."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cached_property

from hybrid.core.models import Demand, Reason
from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.pieces import gpus

# A plan looks at no more nodes than this for victims, those with the most slack first. Enough
# that the best of them is as good as the best of all, and few enough for ten thousand nodes.
_MOST_NODES = 400


@dataclass(frozen=True, slots=True)
class Victim:
    """A job at home that may be suspended.

    Attributes:
        spare_s: How long it can stay away and still be in time.
    """

    job: JobView
    spare_s: float
    gpus: float


@dataclass(frozen=True, slots=True)
class Clearing:
    """What would be stopped on one node so that a piece fits there.

    Attributes:
        freed: GPUs free on the node afterwards.
    """

    gpus: float
    least_spare_s: float
    node_id: str
    victims: tuple[Victim, ...]
    freed: float

    @property
    def order(self) -> tuple[float, float, str]:
        """Fewest GPUs stopped first, then the most slack."""
        return (self.gpus, -self.least_spare_s, self.node_id)


@dataclass
class Reservoir:
    """The jobs at home that may be suspended now, for work with or without checkpoints.

    Attributes:
        _by_node: Victims by node, the largest and then the richest first; for pinned work or not.
        _ranked: Nodes for a piece of one kind, the cheapest to clear first; kept up as they are
            used.
        _failed: Kinds of work for which nothing was found: nothing will be in this plan.
    """

    draft: Draft
    _by_node: dict[bool, dict[str, list[Victim]]] = field(default_factory=dict)
    _ranked: dict[tuple[bool, object], list[tuple[tuple[float, float, str], Clearing]]] = field(
        default_factory=dict
    )
    _failed: set[tuple[bool, object]] = field(default_factory=set)

    def make_room(self, job: JobView, spare_gpus: float) -> tuple[Slot, ...] | None:
        """Suspend what is needed so that `job` fits at home, or do nothing.

        Args:
            job: A waiting job that may make room.
            spare_gpus: How many GPUs more than its own may be freed: what other such jobs need.

        Returns:
            Where it fits then.
        """
        is_pinned = job.checkpoint is None
        if self.draft.terms.is_suspending_futile and not is_pinned:
            return None
        key = (is_pinned, job.kind)
        if key in self._failed or not self._victims(is_pinned=is_pinned):
            return None
        if job.is_single:
            clearing = self._best(job, is_pinned=is_pinned, spare_gpus=spare_gpus)
            clearings = [clearing] if clearing else []
        else:
            clearings = self._for_gang(job, is_pinned=is_pinned)
        stops = sum(len(clearing.victims) for clearing in clearings)
        if not clearings or stops > self.draft.stops_left:
            self._failed.add(key)
            return None
        victims = [victim for clearing in clearings for victim in clearing.victims]
        if any(v.job.priority > job.priority and not v.job.is_filler for v in victims):
            return None  # however much slack it has: more urgent work waits for no other
        for victim in victims:
            self._suspend(victim, job)
        return tuple(Slot(c.node_id, size) for c, size in zip(clearings, job.sizes, strict=True))

    def _suspend(self, victim: Victim, job: JobView) -> None:
        reason = Reason(
            code="slack",
            message=f"can wait for {victim.spare_s:.0f} s and still be in time; its place goes to "
            f"{job.job_id}",
            facts={
                "spare_s": round(victim.spare_s, 3),
                "gpus": victim.gpus,
                "for_job": job.job_id,
                "for_gpus": job.gpus,
            },
        )
        self.draft.suspend(victim.job, reason)

    # --- who ------------------------------------------------------------------------------

    def _victims(self, *, is_pinned: bool) -> dict[str, list[Victim]]:
        if is_pinned not in self._by_node:
            params = self.draft.terms.params
            hold_s = params.pinned_hold_s if is_pinned else params.hold_s
            run_s = params.pinned_run_s if is_pinned else params.min_run_s
            self._by_node[is_pinned] = _by_node(self._able, hold_s, run_s)
        return self._by_node[is_pinned]

    @cached_property
    def _able(self) -> list[tuple[Victim, float]]:
        """Return the jobs that may be suspended for some work, with their useful stretch."""
        terms, params = self.draft.terms, self.draft.terms.params
        least_run_s = min(params.min_run_s, params.pinned_run_s)
        least_spare_s = min(params.hold_s, params.pinned_hold_s)
        able = []
        # The quick questions first: asked of every job at home in nearly each plan.
        for job in self.draft.at_home.values():
            since_s = job.useful_from_s
            stretch_s = 0.0 if since_s is None else terms.now_s - since_s
            if stretch_s < least_run_s or job.checkpoint is None or not job.is_single:
                continue
            spare_s = terms.spare_s(job)
            if spare_s < least_spare_s or not terms.may_suspend(job):
                continue
            if terms.may_interrupt(job, keep=1 + self.draft.kept_for_exchange(job)):
                able.append((Victim(job, spare_s, job.gpus), stretch_s))
        return able

    def _left(self, node_id: str, *, is_pinned: bool) -> list[Victim]:
        found = self._victims(is_pinned=is_pinned).get(node_id, [])
        return [victim for victim in found if victim.job.job_id in self.draft.at_home]

    # --- where ----------------------------------------------------------------------------

    def _best(self, job: JobView, *, is_pinned: bool, spare_gpus: float) -> Clearing | None:
        """Return the cheapest node to clear for a job of one piece."""
        ranked = self._rank(job, is_pinned=is_pinned)
        passed = []
        found = None
        while ranked and found is None:
            _, clearing = heapq.heappop(ranked)
            now = self._clear(job.pieces[0], clearing.node_id, is_pinned=is_pinned)
            if now is None:
                continue
            if now.order > clearing.order:
                heapq.heappush(ranked, (now.order, now))
            elif now.freed - job.gpus > spare_gpus:
                passed.append((now.order, now))
            else:
                found = now
        if found is not None:
            # The node may serve again: it is judged anew when its turn comes.
            passed.append((found.order, found))
        for entry in passed:
            heapq.heappush(ranked, entry)
        return found

    def _rank(
        self, job: JobView, *, is_pinned: bool
    ) -> list[tuple[tuple[float, float, str], Clearing]]:
        key = (is_pinned, job.kind)
        if key not in self._ranked:
            nodes = self._victims(is_pinned=is_pinned)
            made = [self._clear(job.pieces[0], n, is_pinned=is_pinned) for n in nodes]
            self._ranked[key] = [(one.order, one) for one in made if one is not None]
            heapq.heapify(self._ranked[key])
        return self._ranked[key]

    def _for_gang(self, job: JobView, *, is_pinned: bool) -> list[Clearing]:
        """Return the cheapest nodes to clear, one for each piece, or none at all."""
        chosen: list[Clearing] = []
        used: set[str] = set()
        by_kind: dict[float, list[Clearing]] = {}
        for piece, size in zip(job.pieces, job.sizes, strict=True):
            if size not in by_kind:
                options = [
                    self._clear(piece, node_id, is_pinned=is_pinned)
                    for node_id in self._candidates(size, is_pinned=is_pinned)
                ]
                by_kind[size] = sorted((o for o in options if o), key=lambda o: o.order)
            best = next((o for o in by_kind[size] if o.node_id not in used), None)
            if best is None:
                return []
            used.add(best.node_id)
            chosen.append(best)
        return chosen

    def _candidates(self, size: float, *, is_pinned: bool) -> set[str]:
        """Return the nodes that have victims, or so many GPUs free."""
        home = self.draft.board.home
        open_nodes = (home.at(free) for free in home.levels() if free >= size)
        return set(self._victims(is_pinned=is_pinned)).union(*open_nodes)

    def _clear(self, piece: Demand, node_id: str, *, is_pinned: bool) -> Clearing | None:
        home = self.draft.board.home
        free = home.free[node_id]
        need = gpus(piece.shape) - free
        if need <= 0:
            is_open = home.admits(piece, node_id)
            return Clearing(0.0, 0.0, node_id, (), free) if is_open else None
        chosen = _choose(self._left(node_id, is_pinned=is_pinned), need)
        if not chosen or not home.admits_after(piece, node_id, [v.job for v in chosen]):
            return None
        stopped = sum(victim.gpus for victim in chosen)
        least_s = min(victim.spare_s for victim in chosen)
        return Clearing(stopped, least_s, node_id, tuple(chosen), free + stopped)


def _by_node(
    able: list[tuple[Victim, float]], hold_s: float, run_s: float
) -> dict[str, list[Victim]]:
    found: dict[str, list[Victim]] = {}
    for victim, stretch_s in able:
        if victim.spare_s >= hold_s and stretch_s >= run_s:
            found.setdefault(victim.job.slots[0].node_id, []).append(victim)
    for victims in found.values():
        victims.sort(key=lambda v: (-v.gpus, -v.spare_s, v.job.job_id))
    if len(found) <= _MOST_NODES:
        return found
    order = sorted(found, key=lambda n: (-max(v.spare_s for v in found[n]), n))
    return {node_id: found[node_id] for node_id in order[:_MOST_NODES]}


def _choose(victims: list[Victim], need: float) -> list[Victim]:
    """Return the victims that free `need` GPUs and the fewest more: one, or several small ones.

    Args:
        victims: The largest first, of equal ones the richest first.
        need: GPUs.
    """
    one = None
    several: list[Victim] = []
    left = need
    for victim in victims:
        if victim.gpus >= need and (one is None or victim.gpus < one.gpus):
            one = victim
        if victim.gpus <= left:
            several.append(victim)
            left -= victim.gpus
    if one is not None and one.gpus == need:
        return [one]
    if left <= 0 and (one is None or sum(v.gpus for v in several) < one.gpus):
        return several
    return [one] if one else []

"""Room at home from slack: running jobs that can be late for a while wait in the queue instead."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.core.models import Demand, Reason
from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.jobs.board import Nodes
from hybrid.core.policy.jobs.draft import Draft


@dataclass(frozen=True)
class Victim:
    """A job at home that may be suspended.

    Attributes:
        spare_s: How long it can stay away and still be in time.
    """

    job: JobView
    spare_s: float

    @property
    def gpus(self) -> float:
        """GPUs it would free."""
        return self.job.gpus


@dataclass(frozen=True)
class Clearing:
    """What would be stopped on one node so that a piece fits there."""

    gpus: float
    least_spare_s: float
    node_id: str
    victims: tuple[Victim, ...]

    @property
    def order(self) -> tuple[float, float, str]:
        """Fewest GPUs stopped first, then the most slack."""
        return (self.gpus, -self.least_spare_s, self.node_id)


@dataclass
class Reservoir:
    """The jobs at home that may be suspended now, by node, for work with or without checkpoints."""

    draft: Draft
    _by_pin: dict[bool, dict[str, list[Victim]]] = field(default_factory=dict)

    def make_room(self, job: JobView, spare_gpus: float) -> tuple[Slot, ...] | None:
        """Suspend what is needed so that `job` fits at home, or do nothing.

        Args:
            job: A waiting job that may make room.
            spare_gpus: How many GPUs more than its own may be freed: what other such jobs need.

        Returns:
            Where it fits then.
        """
        victims = self._victims(is_pinned=job.checkpoint is None)
        if not victims:
            return None
        clearings = _clear(job, self.draft.board.home, victims, spare_gpus)
        if clearings is None:
            return None
        for clearing in clearings:
            for victim in clearing.victims:
                self._suspend(victim, job)
        sizes = [piece.shape.get("GPU", 0.0) for piece in job.pieces]
        return tuple(Slot(c.node_id, size) for c, size in zip(clearings, sizes, strict=True))

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
        node_id = victim.job.slots[0].node_id
        for by_node in self._by_pin.values():
            if node_id in by_node:
                by_node[node_id] = [v for v in by_node[node_id] if v.job is not victim.job]

    def _victims(self, *, is_pinned: bool) -> dict[str, list[Victim]]:
        if is_pinned not in self._by_pin:
            params = self.draft.terms.params
            hold_s = params.pinned_hold_s if is_pinned else params.hold_s
            run_s = params.pinned_run_s if is_pinned else params.min_run_s
            self._by_pin[is_pinned] = _find(self.draft, hold_s, run_s)
        return self._by_pin[is_pinned]


def _find(draft: Draft, hold_s: float, run_s: float) -> dict[str, list[Victim]]:
    terms = draft.terms
    found: dict[str, list[Victim]] = {}
    for job in draft.at_home.values():
        if job.checkpoint is None or not job.is_single or terms.stretch_s(job) < run_s:
            continue
        if not (
            terms.may_suspend(job)
            and terms.may_interrupt(job, keep=1 + draft.kept_for_exchange(job))
        ):
            continue
        spare_s = terms.spare_s(job)
        if spare_s >= hold_s:
            found.setdefault(job.slots[0].node_id, []).append(Victim(job, spare_s))
    return found


def _clear(
    job: JobView, home: Nodes, victims: dict[str, list[Victim]], spare_gpus: float
) -> list[Clearing] | None:
    """Return the cheapest nodes to clear, one for each piece of the job."""
    if job.is_single:
        piece = job.pieces[0]
        options = [_clear_node(piece, node_id, home, found) for node_id, found in victims.items()]
        fitting = [
            one
            for one in options
            if one and one.gpus + home.free[one.node_id] - job.gpus <= spare_gpus
        ]
        return [min(fitting, key=lambda one: one.order)] if fitting else None
    chosen: list[Clearing] = []
    used: set[str] = set()
    for piece in job.pieces:
        nodes = (node_id for node_id in home.free if node_id not in used)
        options = [_clear_node(piece, n, home, victims.get(n, [])) for n in nodes]
        best = min((one for one in options if one), key=lambda one: one.order, default=None)
        if best is None:
            return None
        used.add(best.node_id)
        chosen.append(best)
    return chosen


def _clear_node(piece: Demand, node_id: str, home: Nodes, found: list[Victim]) -> Clearing | None:
    need = piece.shape.get("GPU", 0.0) - home.free[node_id]
    if need <= 0:
        return Clearing(0.0, 0.0, node_id, ()) if home.admits(piece, node_id) else None
    chosen = _choose(found, need)
    if chosen is None or not home.admits_after(piece, node_id, [v.job for v in chosen]):
        return None
    gpus = sum(victim.gpus for victim in chosen)
    return Clearing(gpus, min(v.spare_s for v in chosen), node_id, tuple(chosen))


def _choose(victims: list[Victim], need: float) -> list[Victim] | None:
    """Return the victims that free `need` GPUs and the fewest more: one, or several small ones."""
    one = min(
        (v for v in victims if v.gpus >= need),
        key=lambda v: (v.gpus, -v.spare_s, v.job.job_id),
        default=None,
    )
    if one is not None and one.gpus == need:
        return [one]
    several: list[Victim] = []
    left = need
    for victim in sorted(victims, key=lambda v: (-v.gpus, -v.spare_s, v.job.job_id)):
        if victim.gpus <= left:
            several.append(victim)
            left -= victim.gpus
            if left <= 0:
                break
    if left <= 0 and (one is None or sum(v.gpus for v in several) < one.gpus):
        return several
    return [one] if one else None

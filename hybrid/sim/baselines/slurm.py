"""Slurm's power saving: resume a node for each job that cannot start, suspend idle nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.models import Offer
from hybrid.core.policy.plan import Action, Snapshot
from hybrid.sim.baselines.acting import give_back, launch
from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.packing import missing_nodes
from hybrid.sim.baselines.seen import Seen, largest, smallest


@dataclass
class Slurm(Baseline):
    """Two partitions: nodes of one GPU for jobs of one, whole nodes for all others.

    Args:
        suspend_after_s: `SuspendTime`; AWS's services set 600 s.
        resume_rate: `ResumeRate`: nodes resumed at one look, at most.
    """

    suspend_after_s: float = 600.0
    resume_rate: int = 10

    @property
    def name(self) -> str:
        """Its kind and how it is tuned."""
        return f"slurm(suspend {self.suspend_after_s:g} s, rate {self.resume_rate})"

    def scale(self, seen: Seen, snapshot: Snapshot) -> Sequence[Action]:
        """Return launches for the jobs that cannot start, and ends of idle nodes."""
        one, whole = smallest(snapshot.offers, 1), largest(snapshot.offers)

        def size_of(gpus: float) -> Offer | None:
            offer = one if gpus <= 1 else whole
            return offer if offer is not None and offer.gpu_count >= gpus else None

        missing = missing_nodes(seen, size_of, is_shared=False)[: self.resume_rate]
        idle = seen.idle(for_s=self.suspend_after_s)
        return [
            *(launch(offer, "slurm") for offer in missing),
            *(give_back(n.instance_id, seen.now_s, "slurm", idle_s=n.idle_s or 0) for n in idle),
        ]

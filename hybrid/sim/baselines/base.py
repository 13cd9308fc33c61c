"""What all baselines have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.plan import Action, Snapshot
from hybrid.sim.baselines.dispatching import first_come
from hybrid.sim.baselines.seen import Seen

_PARAMS = JobParams()


@dataclass
class Baseline:
    """A policy that only counts nodes; it may remember what it saw, so it is good for one run."""

    @property
    def name(self) -> str:
        """What results call it: its kind and how it is tuned."""
        raise NotImplementedError

    @property
    def jobs(self) -> JobParams:
        """Allowances by which results count; no baseline uses them."""
        return _PARAMS

    def decide(self, snapshot: Snapshot) -> Sequence[Action]:
        """Return launches and returns of nodes."""
        if not snapshot.offers:
            return ()
        return self.scale(Seen.of(snapshot), snapshot)

    def scale(self, seen: Seen, snapshot: Snapshot) -> Sequence[Action]:
        """Return launches and returns of nodes, where something can be rented."""
        raise NotImplementedError

    def dispatch(self, draft: Draft) -> None:
        """Start waiting jobs, first come, first served."""
        first_come(draft)

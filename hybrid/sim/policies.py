"""What the simulator asks: a policy, and its rule for what happens between two of its looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hybrid.core.policy.decide import decide
from hybrid.core.policy.jobs.dispatch import dispatch
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.params import PROFILES, JobParams, ProfileName
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Action, Snapshot


class Policy(Protocol):
    """A policy under test. It sees snapshots only: neither run times nor anything to come."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    @property
    def jobs(self) -> JobParams:
        """Allowances by which deadlines are counted."""
        ...

    def decide(self, snapshot: Snapshot) -> Sequence[Action]:
        """Return what to do at a tick."""
        ...

    def dispatch(self, draft: Draft) -> None:
        """Start waiting jobs on what is free, at any moment."""
        ...


@dataclass(frozen=True)
class Reservoir:
    """The product's own policy: the very function that the controller runs."""

    name: str
    params: PolicyParams

    @classmethod
    def of(cls, profile: ProfileName, **changes: float) -> Reservoir:
        """Return a profile, with some of its thresholds changed."""
        jobs = PROFILES[profile].model_copy(update=changes)
        return cls(profile, PolicyParams(jobs=jobs, launches_per_tick=1_000))

    @property
    def jobs(self) -> JobParams:
        """Thresholds for jobs."""
        return self.params.jobs

    def decide(self, snapshot: Snapshot) -> Sequence[Action]:
        """Return the plan's actions."""
        return decide(snapshot, self.params).actions

    def dispatch(self, draft: Draft) -> None:
        """Start waiting jobs as the plan itself does."""
        dispatch(draft)

"""Keeping decisions, as the loop sees it."""

from __future__ import annotations

from typing import Protocol

from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Plan, Snapshot


class Recorder(Protocol):
    """Keeps decisions, so that they can be made again and looked into."""

    def note(self, snapshot: Snapshot, params: PolicyParams, plan: Plan) -> None:
        """Keep a decision if it has news. Returns at once, and never raises."""
        ...


class NoRecorder:
    """Keeps nothing."""

    def note(self, snapshot: Snapshot, params: PolicyParams, plan: Plan) -> None:
        """See `Recorder.note`."""

"""What is kept of a decision, so that it can be made again: what it saw, and what it said."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from hybrid.core.models import Model
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Plan, Snapshot

RECORD_VERSION = 2
"""Of the form of a record. Goes up when an older program could not read a newer one."""

# Changes by itself, or all the time: no news. `available` of the store changes with each object.
_PASSING: dict[str, Any] = {
    "now_s": True,
    "tick_id": True,
    "commitment": True,
    "starts": True,
    "home_release_gpus_per_s": True,
    "usual_day_share": True,
    "takebacks": True,
    "nodes": {
        "__all__": {"idle_s": True, "activity": True, "available": {"object_store_memory": True}}
    },
    "demands": {"__all__": {"waiting_s": True}},
    "gangs": {"__all__": {"waiting_s": True, "bundles": {"__all__": {"waiting_s": True}}}},
    "instances": {"__all__": {"lease_until_s": True}},
    "blind": {"__all__": {"seen_at_s": True}},
    "unread": {"__all__": {"seen_at_s": True}},
}


class RecordHead(Model):
    """The first line of a file of decisions: what holds for all of them.

    Attributes:
        version: Of the form.
        hybrid: The program's version.
        params: Thresholds that the decisions were made with.
    """

    kind: Literal["head"] = "head"
    version: int = RECORD_VERSION
    hybrid: str
    params: PolicyParams


class Decision(Model):
    """Any other line.

    Attributes:
        input: See `input_hash`; one who edits a snapshot is found out by it.
    """

    kind: Literal["decision"] = "decision"
    input: str
    snapshot: Snapshot
    plan: Plan


def decision_of(snapshot: Snapshot, params: PolicyParams, plan: Plan) -> Decision:
    """Return what is kept of a decision."""
    return Decision(input=input_hash(snapshot, params), snapshot=snapshot, plan=plan)


def input_hash(snapshot: Snapshot, params: PolicyParams) -> str:
    """Return the SHA-256 of all that a decision depends on, hex.

    What has its default is left out, so that a field that comes later changes no hash.
    """
    digest = hashlib.sha256(params.model_dump_json(exclude_defaults=True).encode())
    digest.update(snapshot.model_dump_json(exclude_defaults=True).encode())
    return digest.hexdigest()


def news_hash(snapshot: Snapshot, plan: Plan) -> str:
    """Return what is equal for two decisions that differ in nothing but the time of day.

    Ages, leases and money grow while nothing happens; what is said of waiting work counts by its
    reason, not by its words.
    """
    findings = [(f.reason.code, f.count, f.gang_id, f.is_for_ever) for f in plan.findings]
    digest = hashlib.sha256(repr(findings).encode())
    digest.update(snapshot.model_dump_json(exclude=_PASSING).encode())
    return digest.hexdigest()

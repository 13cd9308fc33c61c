"""Launches and returns of nodes, with the reason a baseline gives for them."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.core.models import Offer, Reason
from hybrid.core.policy.plan import Drain, Launch


def launch(offer: Offer, code: str, **facts: float) -> Launch:
    """Return a launch of an offer by the baseline called `code`."""
    return Launch(offer=offer, reason=_reason(code, f"rents a node of {offer.gpu_count}", facts))


def give_back(instance_id: str, now_s: float, code: str, **facts: float) -> Drain:
    """Return the end of a node without work by the baseline called `code`."""
    reason = _reason(code, "returns a node without work", facts)
    return Drain(instance_id=instance_id, deadline_at_s=now_s, reason=reason)


def _reason(code: str, message: str, facts: Mapping[str, float]) -> Reason:
    return Reason(code=code, message=message, facts=dict(facts))

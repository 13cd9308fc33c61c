"""The policy for inference services: borrow at home first, rent for what lasts, give back."""

from __future__ import annotations

from hybrid.core.policy.services.decide import decide_services
from hybrid.core.policy.services.params import ServiceParams
from hybrid.core.policy.services.pattern import usual_growth
from hybrid.core.policy.services.plan import (
    Borrow,
    GiveBack,
    Release,
    Rent,
    ServiceMemory,
    ServicePlan,
)
from hybrid.core.policy.services.view import Rate, ServiceView
from hybrid.core.policy.services.why import Why

__all__ = [
    "Borrow",
    "GiveBack",
    "Rate",
    "Release",
    "Rent",
    "ServiceMemory",
    "ServiceParams",
    "ServicePlan",
    "ServiceView",
    "Why",
    "decide_services",
    "usual_growth",
]

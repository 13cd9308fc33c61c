"""Lets the policy that runs in production decide about a simulated service."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from hybrid.core.policy.services import (
    Rate,
    ServiceMemory,
    ServiceParams,
    ServiceView,
    decide_services,
    usual_growth,
)
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.world import Orders, Seen

_SIGN = {"borrow": 1, "give_back": -1, "rent": 1, "release": -1}


class PolicyScaler:
    """Shows `decide_services` what it would see in production, and turns its plan into orders.

    Args:
        params: The simulated service.
        policy: The thresholds.
        name: What people call it.
        settings: What of the thresholds is special.
    """

    def __init__(
        self,
        params: ServiceSimParams,
        policy: ServiceParams,
        *,
        name: str = "policy",
        settings: Mapping[str, float | str] | None = None,
    ) -> None:
        self.name = name
        self.settings = dict(settings or {})
        self._params = params
        self._policy = policy
        self._memory = ServiceMemory()
        seen_s = max(2 * policy.trend_s, *policy.spans_s)
        self._rates: deque[Rate] = deque(maxlen=max(1, round(seen_s / params.tick_s)))
        self._slot: list[float] = []
        self._slots: list[float | None] = []
        self._usual: float | None = None

    def decide(self, seen: Seen) -> Orders:
        """Return the orders of one plan."""
        tick_s = self._params.tick_s
        rps = seen.arrived / tick_s
        self._rates.append(Rate(end_at_s=seen.now_s, span_s=tick_s, rps=rps))
        self._remember(rps)
        plan = decide_services(self._view(seen), self._policy)
        self._memory = plan.memory
        loans = rents = 0
        for action in plan.actions:
            change = _SIGN[action.kind] * action.count
            if action.kind in ("borrow", "give_back"):
                loans += change
            else:
                rents += change
        return Orders(loans=loans, rents=rents)

    def _view(self, seen: Seen) -> ServiceView:
        params = self._params
        return ServiceView(
            service="service",
            now_s=seen.now_s,
            tick_s=params.tick_s,
            wait_slo_s=params.wait_slo_s,
            replica_rps=params.replica_rps,
            rates=tuple(self._rates),
            backlog=seen.backlog,
            home_count=seen.home,
            borrowed_count=seen.borrowed,
            borrowing_count=seen.borrowing,
            rented_count=seen.rented,
            booting_count=seen.booting,
            borrowable_count=params.borrowable,
            rentable_count=params.rentable,
            usd_per_hour=params.usd_per_gpu_hour,
            borrow_s=params.loan_s,
            boot_s=params.boot.expected_s,
            usual_growth=self._usual,
            memory=self._memory,
        )

    def _remember(self, rps: float) -> None:
        self._slot.append(rps)
        if len(self._slot) < round(self._params.slot_s / self._params.tick_s):
            return
        self._slots.append(sum(self._slot) / len(self._slot))
        self._slot = []
        self._usual = usual_growth(
            self._slots,
            slot_s=self._params.slot_s,
            ahead_s=self._params.boot.expected_s,
            days=self._policy.pattern_days,
        )

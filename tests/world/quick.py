"""Parameters under which a whole burst takes few ticks, for tests with many histories."""

from __future__ import annotations

from hybrid.control.params import ControlParams
from hybrid.core.lifecycle import Deadlines
from hybrid.core.models import Caps
from hybrid.core.policy.params import PolicyParams

STEP_S = 5.0


def quick_params(**changes: object) -> ControlParams:
    """Return parameters for steps of 5 s: a burst is over in about twenty of them."""
    values: dict[str, object] = {
        "tick_s": STEP_S,
        "lease_s": 600.0,
        "renew_s": 60.0,
        "orphan_grace_s": 20.0,
        "proof_s": 60.0,
        "retry_s": 5.0,
        "node_absent_s": 15.0,
        "mass_hold_s": 60.0,
        "backoff_base_s": 20.0,
        "backoff_cap_s": 120.0,
        "deadlines": Deadlines(launch_s=40, join_s=60, drain_s=60, idle_drain_s=15, terminate_s=60),
        "caps": Caps(node_count=3, gpu_count=12, usd_per_hour=10.0, usd_per_day=100.0),
        "policy": PolicyParams(
            max_wait_s=5.0,
            stabilisation_s=0.0,
            idle_after_s=10.0,
            min_life_s=20.0,
            boot_life_ratio=1.0,
            drain_s=60.0,
            exit_margin_s=30.0,
            placement_grace_s=20.0,
        ),
    }
    return ControlParams.model_validate({**values, **changes})


def roomy_params() -> ControlParams:
    """Return quick parameters under which a gang and more find a place."""
    return quick_params(caps=Caps(node_count=6, gpu_count=24, usd_per_hour=20.0, usd_per_day=100.0))

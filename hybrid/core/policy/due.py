"""When waiting alone will change the plan, so that the loop need not sleep past that moment."""

from __future__ import annotations

from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Plan, Snapshot

# The next look comes at nearly the same point of its tick; a hair more, so that it is not early.
_MARGIN_S = 0.01


def due_s(snapshot: Snapshot, plan: Plan, params: PolicyParams) -> float | None:
    """Return in how many seconds the passage of time may call for launches.

    That is when the first work will have waited for too long, or, once some has, when the limit
    will have been broken for long enough. Without this a wait that ends a millisecond after a
    tick costs a whole tick more, and twice in a row that is two.

    Returns:
        More than 0; `None` when time alone changes nothing about launches.
    """
    if plan.breach_since_s is not None:
        left_s = plan.breach_since_s + params.stabilisation_s - snapshot.now_s
        return left_s + _MARGIN_S if left_s > 0 else None
    ages_s = [
        *(demand.waiting_s for demand in snapshot.demands),
        *(gang.waiting_s for gang in snapshot.gangs),
    ]
    left = [params.max_wait_s - age_s for age_s in ages_s if age_s is not None]
    return min((left_s + _MARGIN_S for left_s in left if left_s >= 0), default=None)

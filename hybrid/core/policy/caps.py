"""What a hard money cap demands of what is rented already.

It asks nothing of Ray, so it also holds while Ray is silent and while the cluster goes down.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.core.models import Instance, InstanceState, Reason
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Drain, Snapshot, Terminate
from hybrid.core.policy.words import plural

_S = InstanceState


def leave_for_caps(snapshot: Snapshot, params: PolicyParams) -> list[Drain | Terminate] | None:
    """Return how everything rented leaves since a cap is reached, or `None` when none is."""
    over = cap_reached(snapshot)
    return None if over is None else list(_leave_now(snapshot, params, over))


def cap_reached(snapshot: Snapshot) -> Reason | None:
    """Return why everything rented must leave now, or `None`."""
    caps, used = snapshot.caps, snapshot.commitment
    rows = (
        ("day", caps.usd_per_day, used.day_usd),
        ("month", caps.usd_per_month, used.month_usd),
    )
    for period, cap, spent in rows:
        if cap is not None and spent + used.day_exit_usd >= cap and used.node_count:
            return Reason(
                code=f"budget_{period}",
                message=(
                    f"${spent:.2f} of ${cap:.2f} for this {period} are spent, and "
                    f"${used.day_exit_usd:.2f} are kept to bring "
                    f"{plural(used.node_count, 'rented node')} home"
                ),
                facts={
                    "spent_usd": round(spent, 4),
                    "exit_usd": round(used.day_exit_usd, 4),
                    "cap_usd": cap,
                },
            )
    return None


def _leave_now(
    snapshot: Snapshot, params: PolicyParams, reason: Reason
) -> Iterator[Drain | Terminate]:
    by_s = snapshot.now_s + params.drain_s
    for instance in sorted(snapshot.instances, key=lambda i: i.instance_id):
        if instance.quarantine:
            continue
        if instance.state is _S.BOOTING:
            yield Terminate(instance_id=instance.instance_id, reason=reason)
        elif instance.state is _S.RUNNING or _drains_too_long(instance, by_s):
            yield Drain(
                instance_id=instance.instance_id,
                is_busy=True,
                deadline_at_s=by_s,
                reason=reason,
            )


def _drains_too_long(instance: Instance, by_s: float) -> bool:
    """Return whether an instance leaves already, and later than the cap allows."""
    is_draining = instance.state is _S.DRAINING and instance.deadline_at_s is not None
    return is_draining and (instance.deadline_at_s or 0.0) > by_s

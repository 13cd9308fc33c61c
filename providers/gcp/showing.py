"""Google's machines as the port shows them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from hybrid.core.models import CloudInstance, CloudState
from hybrid.core.tags import OFFER
from providers.gcp.naming import decoded, encoded_key
from providers.gcp.resources import Machine
from providers.gcp.userdata import EXPIRY_KEY

# https://cloud.google.com/compute/docs/instances/instance-lifecycle
_STATES: Mapping[str, CloudState] = {
    "PENDING": CloudState.PENDING,
    "PROVISIONING": CloudState.PENDING,
    "STAGING": CloudState.PENDING,
    "RUNNING": CloudState.RUNNING,
    "REPAIRING": CloudState.RUNNING,
    "PENDING_STOP": CloudState.STOPPING,
    "STOPPING": CloudState.STOPPING,
    "DEPROVISIONING": CloudState.STOPPING,
    "SUSPENDING": CloudState.STOPPING,
    # Not gone: the disk is there and is paid for, until somebody deletes the instance.
    "STOPPED": CloudState.STOPPING,
    "SUSPENDED": CloudState.STOPPING,
    "TERMINATED": CloudState.STOPPING,
}
_HALTED = ("STOPPED", "SUSPENDED", "TERMINATED")


def state_of(machine: Machine) -> CloudState:
    """Return a machine's state. A status nobody knows yet: it exists, so it costs."""
    return _STATES.get(machine.status, CloudState.RUNNING)


def shown(machine: Machine, instance_id: str) -> CloudInstance:
    """Return a machine of ours as the port shows it."""
    return CloudInstance(
        instance_id=instance_id,
        provider_id=str(machine.place),
        state=state_of(machine),
        launched_at_s=machine.created_at_s,
        expires_at_s=_expires_at_s(machine),
        offer_mark=decoded(machine.labels.get(encoded_key(OFFER), "")) or "",
        problem=_problem(machine),
    )


def _expires_at_s(machine: Machine) -> float | None:
    """Return the earlier of the two ends: the node's own and Google's."""
    ends = [] if machine.ends_at_s is None else [machine.ends_at_s]
    with suppress(KeyError, ValueError):  # somebody took it away; Google's end stays
        ends.append(float(machine.metadata[EXPIRY_KEY]))
    return min(ends, default=None)


def _problem(machine: Machine) -> str:
    if machine.status not in _HALTED:
        return ""
    words = f" ({machine.status_message})" if machine.status_message else ""
    return (
        f"it was stopped, by its own program, its lease or somebody in the console{words}; it "
        "cannot come back and is deleted"
    )

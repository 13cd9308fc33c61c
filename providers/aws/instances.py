"""What EC2 says about instances, in our words; and which of them are ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from hybrid.core.models import CloudInstance, CloudState
from hybrid.core.tags import OFFER

CLUSTER = "hybrid-cluster"
CLUSTER_NAME = "hybrid-cluster-name"
INSTANCE = "hybrid-instance"
EXPIRES = "hybrid-expires-at"
TEMPLATE = "hybrid-template"
TOKEN = "hybrid-token"  # noqa: S105  # the name of a tag; the token itself is no secret

_STATES: Mapping[str, CloudState] = {
    "pending": CloudState.PENDING,
    "running": CloudState.RUNNING,
    "shutting-down": CloudState.STOPPING,
    "stopping": CloudState.STOPPING,
    "stopped": CloudState.STOPPING,
    "terminated": CloudState.GONE,
}
# Ended through the API: by us, as a rule.
_USUAL = frozenset({"", "pending", "Client.UserInitiatedShutdown"})


def tags_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return an instance's tags."""
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}


def is_ours(item: Mapping[str, Any], cluster_id: str) -> bool:
    """Return whether an instance was made by a create call of our cluster.

    EC2's filters know wildcards, and people copy tags: the exact cluster and an id are needed.
    """
    tags = tags_of(item)
    return tags.get(CLUSTER) == cluster_id and bool(tags.get(INSTANCE))


class Place(NamedTuple):
    """Where an instance is.

    The account is part of it: to credentials of another one no instance of ours exists, and
    "does not exist" means gone.
    """

    account: str
    region: str
    ec2_id: str

    def __str__(self) -> str:
        """Return the id that the ledger keeps: `123456789012/us-east-1/i-0123456789abcdef0`."""
        return "/".join(self)

    @classmethod
    def of(cls, provider_id: str) -> Place | None:
        """Return the place that an id names; `None` when it is no id of ours."""
        parts = provider_id.split("/")
        return cls(*parts) if len(parts) == 3 and parts[2].startswith("i-") else None


def cloud_instance(item: Mapping[str, Any], account: str, region: str) -> CloudInstance:
    """Return one instance of DescribeInstances."""
    tags = tags_of(item)
    return CloudInstance(
        instance_id=tags[INSTANCE],
        provider_id=str(Place(account, region, item["InstanceId"])),
        state=state_of(item),
        launched_at_s=item["LaunchTime"].timestamp(),
        expires_at_s=_number(tags.get(EXPIRES, "")),
        offer_mark=tags.get(OFFER, ""),
        problem=_problem(item),
    )


def state_of(item: Mapping[str, Any]) -> CloudState:
    """Return an instance's state; one that EC2 invents later counts as stopping."""
    return _STATES.get(item["State"]["Name"], CloudState.STOPPING)


def _problem(item: Mapping[str, Any]) -> str:
    name = item["State"]["Name"]
    if name in ("stopping", "stopped"):
        return f"it is {name}: somebody stopped it, and its disk still costs money"
    reason = item.get("StateReason", {})
    code = str(reason.get("Code", ""))
    if name not in ("shutting-down", "terminated") or code in _USUAL:
        return ""
    message = str(reason.get("Message", ""))
    return message if message.startswith(code) else f"{code}: {message}"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

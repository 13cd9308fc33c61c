"""One instance in whichever zone has one: a launch template and an instant fleet of one.

A fleet takes user data from a launch template only, and ours has the join token of one instance:
so each launch has a template of its own, removed when the launch is over. A crash in between
leaves a template, which costs nothing, and `sweep` finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    InvalidRequestError,
    ProviderError,
    QuotaError,
    Scope,
    ThrottledError,
    TransientError,
)
from hybrid.core.ports import Clock
from providers.aws import errors
from providers.aws.client import AwsClient
from providers.aws.instances import CLUSTER, TOKEN, tags_of
from providers.aws.requests import Order, create_fleet, create_launch_template, template_name

SWEEP_AFTER_S = 3600.0
"""Age at which a launch template cannot belong to a launch any more."""

_EXISTS = "InvalidLaunchTemplateName.AlreadyExistsException"
_PASSING = (ThrottledError, TransientError)
_REFUSALS = (AuthError, CapacityError, InvalidRequestError, QuotaError)


class Fleets:
    """Launches in any zone of a region."""

    def __init__(self, client: AwsClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def launch(self, order: Order) -> str:
        """Return EC2's id of the instance. Raises as `Provider.launch`."""
        region = order.pool.region
        try:
            self._client.call(region, "ec2.create_launch_template", **create_launch_template(order))
        except InvalidRequestError as error:
            if error.code != _EXISTS:
                raise
            # Of an earlier try with this token, and so with these parameters or older ones.
        try:
            answer = self._client.call(region, "ec2.create_fleet", "FleetId", **create_fleet(order))
        except _REFUSALS:
            self._remove(region, template_name(order.token))
            raise
        self._remove(region, template_name(order.token))
        launched = [name for item in answer.get("Instances", []) for name in item["InstanceIds"]]
        if launched:
            return str(launched[0])
        raise _refusal(answer.get("Errors", []), order, provider=self._client.provider)

    def sweep(self, region: str, cluster_id: str) -> None:
        """Remove the launch templates that launches of this cluster left behind."""
        try:
            items = self._client.pages(
                region,
                "ec2.describe_launch_templates",
                "LaunchTemplates",
                Filters=[{"Name": f"tag:{CLUSTER}", "Values": [cluster_id]}],
            )
            found = list(items)
        except ProviderError:
            return  # nothing depends on it; the next time will do
        for item in found:
            age_s = self._clock.now_s() - item["CreateTime"].timestamp()
            tags = tags_of(item)
            is_ours = item["LaunchTemplateName"] == template_name(tags.get(TOKEN, ""))
            if is_ours and tags.get(CLUSTER) == cluster_id and age_s > SWEEP_AFTER_S:
                self._remove(region, item["LaunchTemplateName"])

    def _remove(self, region: str, name: str) -> None:
        try:
            self._client.call(region, "ec2.delete_launch_template", LaunchTemplateName=name)
        except ProviderError:
            return  # the instance is what matters; `sweep` comes by


def _refusal(found: Sequence[Mapping[str, Any]], order: Order, *, provider: str) -> ProviderError:
    """Return why a fleet stayed empty.

    A repeated request brings the same empty answer, so nothing here may ask for the same call
    again: what would pass elsewhere counts as no capacity now. One pool without capacity is
    enough for the same, since it may have some later; what no pool can ever do is refused for
    good.
    """
    what = f"ec2 create_fleet in {order.pool.region}"
    kinds = [
        errors.of_code(
            item["ErrorCode"], item.get("ErrorMessage", ""), provider=provider, what=what
        )
        for item in found
    ]
    words = "; ".join(dict.fromkeys(str(kind) for kind in kinds)) or f"{what}: no instance came"
    code = kinds[0].code if kinds else "NoInstance"
    same: Collection[type[ProviderError]] = {type(kind) for kind in kinds}
    if len(same) == 1 and not issubclass(next(iter(same)), _PASSING):
        return next(iter(same))(words, provider=provider, code=code, scope=Scope.POOL)
    return CapacityError(words, provider=provider, code=code)

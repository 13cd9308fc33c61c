"""One instance in whichever zone has one: an instant fleet of one, from a shared launch template.

The template says what all machines of a kind have in common, and no secret. It is made when it is
first needed, and removed when no launch has needed it for an hour or the cluster goes down. A
crash leaves one at most for each kind, which costs nothing, and `sweep` finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hybrid.core.errors import (
    CapacityError,
    InvalidRequestError,
    ProviderError,
    Scope,
    ThrottledError,
    TransientError,
)
from hybrid.core.ports import Clock
from providers.aws import errors
from providers.aws.client import AwsClient
from providers.aws.instances import CLUSTER, TEMPLATE, tags_of
from providers.aws.once import Once
from providers.aws.requests import Order, create_fleet, create_launch_template, template_name

SWEEP_AFTER_S = 3600.0
"""How long a launch template is kept for the next launch."""

_EXISTS = "InvalidLaunchTemplateName.AlreadyExistsException"
_VANISHED = frozenset(
    {
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateId.NotFoundException",
    }
)
_PASSING = (ThrottledError, TransientError)


class Fleets:
    """Launches in any zone of a region. Thread-safe."""

    def __init__(self, client: AwsClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._templates: Once[tuple[str, str], None] = Once()
        self._used_at_s: dict[tuple[str, str], float] = {}

    def launch(self, order: Order) -> str:
        """Return EC2's id of the instance. Raises as `Provider.launch`."""
        try:
            answer = self._create(order)
        except InvalidRequestError as error:
            if error.code not in _VANISHED:
                raise
            answer = self._create_anew(order)
        launched = [name for item in answer.get("Instances", []) for name in item["InstanceIds"]]
        if launched:
            return str(launched[0])
        found = answer.get("Errors", [])
        if any(item["ErrorCode"] in _VANISHED for item in found):
            self._templates.forget((order.pool.region, template_name(order)))
        raise _refusal(found, order, provider=self._client.provider)

    def sweep(self, region: str, cluster_id: str) -> None:
        """Remove the cluster's launch templates that no launch has needed for long."""
        now_s, monotonic_s = self._clock.now_s(), self._clock.monotonic_s()
        try:
            found = list(self._ours(region, cluster_id))
        except ProviderError:
            return  # nothing depends on it; the next time will do
        for name, made_at_s in found:
            used_at_s = self._used_at_s.get((region, name))
            is_used = used_at_s is not None and monotonic_s - used_at_s <= SWEEP_AFTER_S
            if not is_used and now_s - made_at_s > SWEEP_AFTER_S:
                with suppress(ProviderError):
                    self._remove(region, name)

    def remove_all(self, region: str, cluster_id: str) -> None:
        """Remove all launch templates of the cluster. Raises `ProviderError`: some may be left."""
        first: ProviderError | None = None
        for name, _ in list(self._ours(region, cluster_id)):
            try:
                self._remove(region, name)
            except ProviderError as error:
                first = first or error
        if first is not None:
            raise first

    def _create(self, order: Order) -> Mapping[str, Any]:
        region, name = order.pool.region, template_name(order)
        self._used_at_s[region, name] = self._clock.monotonic_s()
        self._templates.get((region, name), lambda: self._make(order))
        return self._client.call(region, "ec2.create_fleet", "FleetId", **create_fleet(order))

    def _create_anew(self, order: Order) -> Mapping[str, Any]:
        """Do it again, once, after a template has vanished: somebody removed it."""
        self._templates.forget((order.pool.region, template_name(order)))
        try:
            return self._create(order)
        except InvalidRequestError as error:
            if error.code not in _VANISHED:
                raise
            # It is there, and EC2 does not see it everywhere yet.
            raise TransientError(str(error), provider=error.provider, code=error.code) from error

    def _make(self, order: Order) -> None:
        region = order.pool.region
        try:
            self._client.call(region, "ec2.create_launch_template", **create_launch_template(order))
        except InvalidRequestError as error:
            if error.code != _EXISTS:
                raise
            # The name says what is inside: another process, or this one before, made the same.

    def _ours(self, region: str, cluster_id: str) -> Iterator[tuple[str, float]]:
        """Yield name and time of birth of the cluster's templates. Raises `ProviderError`."""
        items = self._client.pages(
            region,
            "ec2.describe_launch_templates",
            "LaunchTemplates",
            Filters=[{"Name": f"tag:{CLUSTER}", "Values": [cluster_id]}],
        )
        for item in items:
            name, tags = item["LaunchTemplateName"], tags_of(item)
            # EC2's filters know wildcards, and people copy tags.
            if tags.get(CLUSTER) == cluster_id and tags.get(TEMPLATE) == name:
                yield name, item["CreateTime"].timestamp()

    def _remove(self, region: str, name: str) -> None:
        self._templates.forget((region, name))
        self._client.call(region, "ec2.delete_launch_template", LaunchTemplateName=name)


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
    is_passing = code in _VANISHED or any(issubclass(kind, _PASSING) for kind in same)
    if len(same) == 1 and not is_passing:
        return next(iter(same))(words, provider=provider, code=code, scope=Scope.POOL)
    return CapacityError(words, provider=provider, code=code)

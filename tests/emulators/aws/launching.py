"""RunInstances as EC2 does it: tokens, stock, quota, checks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from tests.emulators.aws import backend
from tests.emulators.aws.backend import Moto
from tests.emulators.aws.controls import Controls
from tests.emulators.aws.wire import Answer, Request, error, user_data

USER_DATA_BYTES = 16_384
_METADATA_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-=.,_:@")


@dataclass
class _Done:
    """A launch that a token stands for."""

    digest: str
    answer: Answer
    instance_ids: list[str]


@dataclass
class Launcher:
    """Launches instances through moto after the checks that moto lacks."""

    moto: Moto
    controls: Controls
    _done: dict[tuple[str, str, str, str], _Done] = field(default_factory=dict)

    def run_instances(self, request: Request) -> Answer:
        zone = self.zone(request)
        return self.once(request, zone, lambda: self.run(request, zone))

    # --- tokens ----------------------------------------------------------------------------

    def once(self, request: Request, zone: str, launch: object) -> Answer:
        """Return the first answer again for a token that was used.

        RunInstances remembers tokens by zone when the request names one, else by region.
        """
        assert callable(launch)
        token = request.get("ClientToken")
        if len(token) > 64:
            return error("InvalidParameterValue", "The client token is too long")
        key = request.region, zone, request.action, token
        params = json.dumps(sorted(request.params.items()))
        digest = hashlib.sha256(params.encode()).hexdigest()
        if token and (done := self._done.get(key)):
            return self._again(done, digest, request)
        before = {i.id for i in self.moto.instances(request.region)}
        answer: Answer = launch()
        if token and answer.status == 200:
            ids = [i.id for i in self.moto.instances(request.region) if i.id not in before]
            self._done[key] = _Done(digest, answer, ids)
        return answer

    def _again(self, done: _Done, digest: str, request: Request) -> Answer:
        if done.digest != digest:
            return error(
                "IdempotentParameterMismatch",
                "Arguments on this idempotent request are inconsistent with arguments used in "
                "previous request(s).",
            )
        states = {self.moto.find(instance_id).state for instance_id in done.instance_ids}
        if request.action == "RunInstances" and states == {"terminated"}:
            return error(
                "IdempotentInstanceTerminated",
                "The client token was used for an instance that has been terminated.",
            )
        return done.answer

    # --- one pool ---------------------------------------------------------------------------

    def zone(self, request: Request) -> str:
        if subnet := request.get("SubnetId") or request.get("NetworkInterface.1.SubnetId"):
            return self.moto.zone_of(request.region, subnet)
        return request.get("Placement.AvailabilityZone")

    def run(self, request: Request, zone: str) -> Answer:
        refusal = self._refusal(request, zone)
        if refusal is not None:
            return refusal
        answer = self.moto.answer(request)
        if answer.status == 200 and (key := self._stock_key(request, zone)):
            self.controls.stock[key] -= 1
        return answer

    def _refusal(self, request: Request, zone: str) -> Answer | None:
        return (
            self._bad_value(request, zone)
            or self._bad_tag(request)
            or self._over_quota(request)
            or self._sold_out(request, zone)
        )

    def _bad_value(self, request: Request, zone: str) -> Answer | None:
        asked_zone = request.get("Placement.AvailabilityZone")
        subnet = request.get("SubnetId") or request.get("NetworkInterface.1.SubnetId")
        instance_type = request.get("InstanceType")
        if request.get("ImageId") not in self.controls.images:
            image = request.get("ImageId")
            return error("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
        if not backend.is_type(instance_type):
            return error(
                "InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType."
            )
        if subnet and not zone:
            return error("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
        if asked_zone and asked_zone != zone:
            return error(
                "InvalidParameterValue",
                f"Value ({asked_zone}) for parameter availabilityZone is invalid. "
                f"Subnet '{subnet}' is in the availability zone {zone}",
            )
        if len(user_data(request)) > USER_DATA_BYTES:
            return error(
                "InvalidParameterValue", f"User data is limited to {USER_DATA_BYTES} bytes"
            )
        return None

    def _bad_tag(self, request: Request) -> Answer | None:
        is_in_metadata = request.get("MetadataOptions.InstanceMetadataTags") == "enabled"
        for prefix in request.numbered("TagSpecification"):
            for item in request.numbered(f"{prefix}.Tag"):
                key, value = request.get(f"{item}.Key"), request.get(f"{item}.Value")
                if key.startswith("aws:") or not 1 <= len(key) <= 128 or len(value) > 256:
                    return error("InvalidParameterValue", f"Tag '{key}' is not valid")
                if is_in_metadata and not _METADATA_KEY.issuperset(key):
                    return error(
                        "InvalidParameterValue",
                        f"'{key}' is not a valid tag key. Tag keys must match pattern "
                        "([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name",
                    )
        return None

    def _over_quota(self, request: Request) -> Answer | None:
        limit = self.controls.vcpu_limit
        wanted = backend.vcpus(request.get("InstanceType"))
        if limit is None or self.moto.vcpu_count(request.region) + wanted <= limit:
            return None
        return error(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows "
            "for the instance bucket that the specified instance type belongs to.",
        )

    def _sold_out(self, request: Request, zone: str) -> Answer | None:
        key = self._stock_key(request, zone)
        if key is None or self.controls.stock[key] > 0:
            return None
        instance_type = request.get("InstanceType")
        return error(
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {instance_type} capacity in the Availability "
            f"Zone you requested ({zone}). Our system will be working on provisioning additional "
            "capacity.",
        )

    def _stock_key(self, request: Request, zone: str) -> tuple[str, str, str] | None:
        is_spot = request.get("InstanceMarketOptions.MarketType") == "spot"
        market = "spot" if is_spot else "on-demand"
        return self.controls.left(request.get("InstanceType"), zone, market)

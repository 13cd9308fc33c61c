"""What is sent to EC2: the parameters of RunInstances, launch templates and fleets."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from hybrid.core.models import LaunchSpec, Model
from providers.aws.instances import CLUSTER, CLUSTER_NAME, EXPIRES, TEMPLATE, TOKEN
from providers.aws.market import Image
from providers.aws.params import Params, Pool

_TAGGED = ("instance", "volume", "network-interface")


class Order(Model):
    """One launch, whole.

    Attributes:
        params: The provider's configuration.
        token: Idempotency token.
        user_data: The script, not encoded.
        name: What people see in the console.
        group: The same for what is shared.
    """

    params: Params
    pool: Pool
    spec: LaunchSpec
    token: str
    image: Image
    user_data: str = Field(repr=False)  # holds the join token
    name: str
    group: str

    @property
    def tags(self) -> list[dict[str, str]]:
        """All tags of what is rented."""
        return _listed(
            {
                **self.params.tags,
                "Name": self.name,
                **self.spec.tags,
                EXPIRES: expiry(self.spec.expires_at_s),
                TOKEN: self.token,
            }
        )

    @property
    def owner_tags(self) -> dict[str, str]:
        """Tags of what a cluster's launches share: nothing of one instance, nor of one epoch."""
        owner = {
            key: self.spec.tags[key] for key in (CLUSTER, CLUSTER_NAME) if key in self.spec.tags
        }
        return {**self.params.tags, "Name": self.group, **owner}


def expiry(at_s: float) -> str:
    """Return an expiry as its tag has it: whole seconds, which a shell can compare."""
    return f"{at_s:.0f}"


def run_instances(order: Order) -> dict[str, Any]:
    """Return the parameters of RunInstances for one instance in one zone."""
    pool = order.pool
    subnet = order.params.region(pool).subnets.get(pool.zone)
    return {
        **_machine(order),
        "UserData": order.user_data,  # boto3 encodes it
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": order.token,
        # Beside the subnet too: EC2 keeps tokens by zone, and refuses a subnet of another one.
        "Placement": {"AvailabilityZone": pool.zone},
        **({"SubnetId": subnet} if subnet else {}),
        **(_spot(pool) if pool.use_spot else {}),
        "TagSpecifications": _tagged(order, *_spot_tagged(pool)),
    }


def template_name(order: Order) -> str:
    """Return the name of the launch template for machines of this kind.

    It says what is inside: launches of one kind share a template, and one that is made anew is
    the same, so that a repeated request is the same too.
    """
    content = json.dumps([_machine(order), order.owner_tags], sort_keys=True)
    return f"hybrid-{hashlib.sha256(content.encode()).hexdigest()[:40]}"


def create_launch_template(order: Order) -> dict[str, Any]:
    """Return the parameters of CreateLaunchTemplate: what all launches of this kind share.

    Without a client token, which would stand for a template that was removed since.
    """
    name = template_name(order)
    tags = _listed({**order.owner_tags, TEMPLATE: name})
    return {
        "LaunchTemplateName": name,
        "LaunchTemplateData": _machine(order),
        "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}],
    }


def create_fleet(order: Order) -> dict[str, Any]:
    """Return the parameters of CreateFleet for one instance in any zone with a subnet.

    User data and tags are in the request, not in the template: they are this instance's alone.
    """
    pool = order.pool
    price = pool.spot_limit_usd_per_hour
    overrides = [
        {
            "InstanceType": pool.instance_type,
            "SubnetId": subnet,
            **({"MaxPrice": f"{price:.6f}"} if price else {}),
        }
        for _, subnet in sorted(order.params.region(pool).subnets.items())
    ]
    template = {
        "LaunchTemplateName": template_name(order),
        "Version": "1",  # which cannot be changed; a later one would be somebody else's
        "LaunchTemplateSpecificationUserData": base64.b64encode(order.user_data.encode()).decode(),
    }
    spot = {"AllocationStrategy": "price-capacity-optimized"}
    return {
        "Type": "instant",
        "ClientToken": order.token,
        "LaunchTemplateConfigs": [
            {"LaunchTemplateSpecification": template, "Overrides": overrides}
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "spot" if pool.use_spot else "on-demand",
        },
        **({"SpotOptions": spot} if pool.use_spot else {}),
        "TagSpecifications": _tagged(order, "fleet"),
    }


def _machine(order: Order) -> dict[str, Any]:
    region = order.params.region(order.pool)
    disk_bytes = order.pool.disk or region.disk
    ebs: dict[str, Any] = {
        "VolumeSize": math.ceil(disk_bytes / 2**30),
        "VolumeType": "gp3",
        "Encrypted": True,
        "DeleteOnTermination": True,
        **({"KmsKeyId": region.kms_key} if region.kms_key else {}),
    }
    groups, profile, key = region.security_groups, region.instance_profile, region.key_name
    return {
        "ImageId": order.image.image_id,
        "InstanceType": order.pool.instance_type,
        "BlockDeviceMappings": [{"DeviceName": order.image.root_device, "Ebs": ebs}],
        # What turns itself off is ended, not kept: the last resort when the controller is dead.
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "InstanceMetadataTags": "enabled",  # the node reads its lease there
        },
        **({"SecurityGroupIds": list(groups)} if groups else {}),
        **({"IamInstanceProfile": {"Name": profile}} if profile else {}),
        **({"KeyName": key} if key else {}),
    }


def _listed(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _spot(pool: Pool) -> Mapping[str, Any]:
    price = pool.spot_limit_usd_per_hour
    options = {
        "SpotInstanceType": "one-time",
        "InstanceInterruptionBehavior": "terminate",
        **({"MaxPrice": f"{price:.6f}"} if price else {}),
    }
    return {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options}}


def _spot_tagged(pool: Pool) -> tuple[str, ...]:
    return ("spot-instances-request",) if pool.use_spot and pool.zone else ()


def _tagged(order: Order, *more: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": order.tags} for kind in (*_TAGGED, *more)]

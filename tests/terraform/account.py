"""The AWS module in the emulated account, and the adapter at work in what it made."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybrid.core.catalog import Catalog
from hybrid.core.ports import ProviderContext
from providers.aws import AwsProvider
from providers.aws.fleet import SWEEP_AFTER_S
from providers.aws.market import REFRESH_S
from providers.aws.params import Params
from tests.emulators.aws import ACCESS_KEY, IMAGE, SECRET_KEY, AwsEmulator
from tests.emulators.aws.controls import Call
from tests.providers.contract import launch, make_spec
from tests.terraform.workspace import Workspace
from tests.world.clock import VirtualClock

REGION = "us-east-1"
NAME = "lab"  # the name of the cluster that `make_spec` launches for
CREDENTIALS = {
    "AWS_REGION": REGION,
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
}
VARIABLES: dict[str, Any] = {
    "name": NAME,
    "availability_zones": ["us-east-1a", "us-east-1b"],
    "on_prem_cidrs": ["192.168.0.0/24"],
    "image": "ssm:/ml/ami",
    "tags": {"team": "ml"},
    "pools": [
        {"instance_type": "g5.xlarge", "zone": "us-east-1a", "max_nodes": 2},
        {"instance_type": "g5.xlarge", "zone": "us-east-1b", "use_spot": True},
        {"instance_type": "g6.xlarge", "use_spot": True, "spot_limit_usd_per_hour": 3},
    ],
}
EVERYTHING: dict[str, Any] = VARIABLES | {
    "vpn": {"address": "203.0.113.10"},
    "monthly_budget_usd": 500,
    "budget_emails": ["ops@example.com"],
    "flow_log_days": 30,
    "create_spot_role": True,
    "expire_checkpoints_after_days": 30,
}
"""All that the module can make."""


def settings(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's own settings in a module's `hybrid_provider`, pools among them."""
    return {key: value for key, value in bare(output).items() if key != "provider"}


def bare(value: Any) -> Any:
    """Return a value without the nulls in it: what Terraform leaves to the defaults."""
    if isinstance(value, Mapping):
        return {key: bare(item) for key, item in value.items() if item is not None}
    return [bare(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Applied:
    """The module as it was applied.

    Attributes:
        outputs: Its outputs.
        policies: Its policies by name: `launcher`, `data`, and `node`, the role's own.
    """

    workspace: Workspace
    emulator: AwsEmulator
    outputs: Mapping[str, Any]
    policies: Mapping[str, dict[str, Any]]


def apply(workspace: Workspace, emulator: AwsEmulator, variables: Mapping[str, Any]) -> Applied:
    """Apply the AWS module, which is the workspace's root or in it, in an emulated account."""
    workspace.env = {**CREDENTIALS, "AWS_ENDPOINT_URL": emulator.url}
    workspace.apply(variables).ok()
    state = workspace.run("show", "-json").ok().read()["values"]
    kinds = {"aws_iam_policy": "", "aws_iam_role_policy": ""}
    policies = {
        item["name"]: json.loads(item["values"]["policy"])
        for item in resources(state["root_module"])
        if item["type"] in kinds and item["name"] != "flow"
    }
    return Applied(workspace, emulator, workspace.outputs(), policies)


def resources(module: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all resources of a module as `terraform show -json` has it, of inner ones too."""
    own = list(module.get("resources", []))
    return own + [item for child in module.get("child_modules", []) for item in resources(child)]


@dataclass
class Owner:
    """Who launches, as `make_spec` wants it."""

    cluster_id: str = "c-terraform"
    controller_url: str = "http://10.0.0.1:8700"


def work(applied: Applied) -> tuple[list[Call], dict[str, dict[str, str]]]:
    """Let the adapter make every call it can, with the module's settings.

    Returns:
        The calls, and the tags that each instance had.
    """
    emulator, owner = applied.emulator, Owner()
    clock = VirtualClock(now_s=time.time())
    controls = emulator.controls
    controls.parameters["/ml/ami"] = IMAGE
    controls.spot_usd_per_hour = {
        (kind, f"{REGION}{zone}"): 0.4 for kind in ("g5.xlarge", "g6.xlarge") for zone in "ab"
    }
    controls.list_prices = {("g5.xlarge", REGION): "0.85"}
    context = ProviderContext(
        cluster_id=owner.cluster_id,
        cluster_name=NAME,
        state_dir="/nonexistent",
        ray_dir="/nonexistent",
        clock=clock,
        catalog=Catalog(),
    )
    raw = settings(applied.outputs["hybrid_provider"]) | {"endpoint_url": emulator.url}
    provider = AwsProvider("aws", Params.model_validate(raw), context)
    controls.calls.clear()
    offers = provider.offers()
    assert len(offers) == len(VARIABLES["pools"])
    ids = [launch(provider, make_spec(owner), offer=offer) for offer in offers]
    ec2_ids = [name.rpartition("/")[2] for name in ids]
    tags = {name: emulator.moto.tags(name) for name in ec2_ids}
    provider.list_instances()
    provider.extend(ids, until_s=2e9)
    provider.terminate(ids)
    clock.advance(SWEEP_AFTER_S + REFRESH_S)
    provider.offers()
    provider.tidy()
    return list(controls.calls), tags

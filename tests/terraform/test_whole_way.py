"""The whole way: Terraform makes the account's part, hybrid rents in it, and nothing is left.

The real `terraform` applies `examples/aws-burst` to the emulated AWS, `hybrid up` takes
what it needs from its outputs, a machine with a body boots in the subnet that was made, joins,
works, is drained and returned, and `terraform destroy` finds an account that lets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from tests.bodies import Network, require_bodies
from tests.e2e.bodies import BodyDeployment, assert_gone
from tests.e2e.clouds import Clouds, emulated
from tests.e2e.deployment import NAME, Done
from tests.emulators.aws import IMAGE
from tests.terraform.account import CREDENTIALS
from tests.terraform.account_contents import Account
from tests.terraform.workspace import Mirror, Workspace

pytestmark = [pytest.mark.bodies, pytest.mark.ray, pytest.mark.slow]

VALUES = {
    "name": NAME,
    "on_prem_cidrs": ["192.168.0.0/24"],
    "tags": {"team": "ml"},
    "aws_image": IMAGE,
    "aws_pools": [{"instance_type": "g5.xlarge", "usd_per_hour": 1.006, "max_nodes": 2}],
}
"""Of the example's variables."""


class OpsDeployment(BodyDeployment):
    """A cluster whose account and pools are Terraform's outputs."""

    def __init__(self, clouds: Clouds, network: Network, ops: Path) -> None:
        self.ops = ops
        super().__init__(clouds, network, ["aws"])

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Return a configuration without a pool, and of the account only where it is."""
        whole = super().settings(**changes)
        here = ("endpoint_url", "logical_gpus", "python")
        account = {key: whole["providers"]["aws"][key] for key in here}
        return {**whole, "providers": {"aws": account}, "clouds": {"any_of": None}}

    def up(self) -> Done:
        """Run `hybrid up --from-terraform`."""
        done = self.hybrid("up", str(self.config), "-y", "--from-terraform", str(self.ops))
        self.learn()
        return done


@pytest.fixture
def clouds() -> Iterator[Clouds]:
    moto_api_backend.reset()
    with emulated() as clouds:
        yield clouds
    moto_api_backend.reset()


def test_from_an_empty_account_to_an_empty_account(
    clouds: Clouds, mirror: Mirror, tmp_path: Path
) -> None:
    require_bodies()
    emulator = clouds.aws.emulator
    account = Account(emulator)
    before = account.contents()
    ops = Workspace.of(tmp_path / "ops", mirror, "examples/aws-burst").init()
    ops.env = {**CREDENTIALS, "AWS_ENDPOINT_URL": emulator.url}
    ops.apply(VALUES).ok()
    made = ops.outputs()["aws"]["regions"]["us-east-1"]
    with ExitStack() as stack:
        network = Network()
        stack.callback(network.close)
        cluster = OpsDeployment(clouds, network, ops.folder)
        stack.callback(cluster.close)

        cluster.begin()
        job = cluster.submit("provider=aws", gpus=1)
        cluster.wait_until(cluster.started, "the task to run in AWS")
        (row,) = cluster.live_rows()
        machine = emulator.moto.find(row.provider_id.rpartition("/")[2])
        cluster.open_gate()
        assert job.wait().value == "succeeded"
        cluster.wait_until_home()
        cluster.down()

        cluster.assert_clean()
        cluster.assert_launched_once()
        cluster.assert_nothing_left()
    assert_gone(network)
    assert machine.subnet_id in made["subnets"].values()
    assert [group.id for group in machine.security_groups] == made["security_groups"]
    assert {f"{NAME}-node", machine.subnet_id} <= account.contents()  # they outlive a burst

    ops.destroy(VALUES).ok()

    assert ops.in_state() == []
    assert account.contents() == before

"""The stubs are honest: the real schemas, and nothing that reaches a real cloud."""

from __future__ import annotations

import pytest

from hybrid.terraform.plugin import of_file
from tests.terraform.stub.aws.cloud import Cloud
from tests.terraform.stub.aws.provider import KINDS
from tests.terraform.stub.extract import SCHEMAS, SOURCES, used


@pytest.mark.parametrize("name", SOURCES)
def test_a_stub_has_what_our_modules_use_and_no_more(name: str) -> None:
    schemas = of_file(SCHEMAS / f"{name}.json")

    for kind, types in used().items():
        assert set(schemas[kind]) == {t for t in types if t.startswith(f"{name}_")}


def test_what_the_aws_module_makes_is_made_in_the_emulator_but_for_two() -> None:
    module = used(SCHEMAS.parents[3] / "terraform" / "modules" / "aws")

    # moto has no routes of a VPN.
    assert module["resource"] - {"terraform_data"} - set(KINDS) == {
        "aws_vpn_connection_route",
        "aws_vpn_gateway_route_propagation",
    }


@pytest.mark.parametrize("url", ["https://ec2.amazonaws.com", "http://10.0.0.1:4999", "ec2"])
def test_the_aws_stub_speaks_to_this_machine_alone(url: str) -> None:
    with pytest.raises(ValueError, match="is not an emulator on this machine"):
        Cloud(endpoint=url, region="us-east-1", key="x", secret="y")

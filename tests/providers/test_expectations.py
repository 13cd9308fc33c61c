"""What the configuration says about a rented machine's Ray and GPUs is in its orders."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from providers.gcp.naming import Place
from tests.providers.aws_cloud import AwsCloud
from tests.providers.baidu_cloud import baidu_cloud
from tests.providers.contract import launch, make_spec
from tests.providers.gcp_cloud import gcp_cloud

SAYS: dict[str, Any] = {"install_ray": True, "min_driver": "535.104"}


def expected_in(script: str) -> Any:
    """Return that part of the orders in a script."""
    match = re.search(r'"expected": ?(\{[^{}]*\})', script)
    assert match is not None
    return json.loads(match[1])


def assert_follows(told: Any, python: str) -> None:
    assert told == {
        "ray": "2.60.0",
        "python": "3.11",
        "gpus": told["gpus"],
        "min_driver": "535.104",
        "install": [python, "-P", "-m", "pip", "install", "--no-input", "ray[default]==2.60.0"],
    }
    assert told["gpus"] >= 1


def test_aws_passes_it_on(aws: AwsCloud) -> None:
    aws.more = {**SAYS, "python": "/opt/ray/bin/python"}
    user_data = aws.machine(launch(aws.provider(), make_spec(aws))).user_data
    assert_follows(expected_in(base64.b64decode(str(user_data)).decode()), "/opt/ray/bin/python")

    aws.more = {**SAYS, "logical_gpus": True}
    user_data = aws.machine(launch(aws.provider(), make_spec(aws))).user_data
    assert "gpus" not in expected_in(base64.b64decode(str(user_data)).decode())


def test_google_passes_it_on_and_a_pool_may_say_otherwise() -> None:
    with gcp_cloud() as gcp:

        def told() -> Any:
            place = Place.of(launch(gcp.provider(**SAYS), make_spec(gcp)))
            assert place is not None
            machine = gcp.emulator.cloud.instances[place.project, place.zone, place.name]
            items = {item["key"]: item["value"] for item in machine["metadata"]["items"]}
            return expected_in(items["startup-script"])

        assert_follows(told(), "/opt/hybrid/bin/python")
        gcp.pools[0] |= {"install_ray": False, "logical_gpus": True}
        assert told() == {"ray": "2.60.0", "python": "3.11"}


def test_baidu_passes_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with baidu_cloud(monkeypatch) as baidu:
        baidu.account |= SAYS
        launch(baidu.provider(), make_spec(baidu))
        script = base64.b64decode(baidu.create_call().body["userData"]).decode()

    orders = base64.b64decode(script.split("<<'END'\n")[1].split("END")[0])
    assert_follows(expected_in(orders.decode()), "/opt/hybrid/bin/python")

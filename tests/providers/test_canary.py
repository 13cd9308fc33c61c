"""Secrets are canaries: looked for in the user data, tags and logs of each cloud.

Item 33 of the reliability contract. A rented machine gets one secret: the join token of its own
node, good once. The keys of the account never leave the controller, and the cluster's own token
cannot reach a provider at all, since no call of the port has a place for it.
"""

from __future__ import annotations

import base64
import inspect
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from hybrid.core.ports import GangProvider, Provider
from providers.gcp.naming import Place as GcpPlace
from tests.emulators.aws import SECRET_KEY as AWS_KEY
from tests.emulators.baidu import SECRET_KEY as BAIDU_KEY
from tests.providers.aws_cloud import AwsCloud
from tests.providers.baidu_cloud import baidu_cloud
from tests.providers.contract import Cloud, make_spec
from tests.providers.gcp_cloud import gcp_cloud

CANARY = "canary-join-91c4"
ENCODED = base64.b64encode(CANARY.encode()).decode()


@dataclass
class Account:
    """One cloud, and how to look into it.

    Attributes:
        keys: What must never leave the controller.
        script: Returns the user data of a machine.
    """

    cloud: Cloud
    keys: tuple[str, ...]
    script: Callable[[str], str]


@pytest.fixture(params=["aws", "gcp", "baidu"])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    if request.param == "aws":
        aws = request.getfixturevalue("aws")
        assert isinstance(aws, AwsCloud)
        yield Account(aws, (AWS_KEY,), lambda name: _decoded(aws.machine(name).user_data))
    elif request.param == "gcp":
        with gcp_cloud() as gcp:
            key = json.loads(gcp.emulator.key_file.read_text())["private_key"]

            def startup(name: str) -> str:
                place = GcpPlace.of(name)
                assert place is not None
                machine = gcp.emulator.cloud.instances[place.project, place.zone, place.name]
                return json.dumps(machine["metadata"])

            yield Account(gcp, (key, key.splitlines()[1]), startup)
    else:
        with baidu_cloud(request.getfixturevalue("monkeypatch")) as baidu:
            yield Account(
                baidu,
                (BAIDU_KEY,),
                lambda _: _decoded(baidu.create_call().body["userData"]),
            )


def _decoded(text: object) -> str:
    return base64.b64decode(str(text)).decode()


def test_the_user_data_holds_the_nodes_own_token_once_and_no_key_of_the_account(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = account.cloud.provider()
    spec = make_spec(account.cloud)

    name = provider.launch(provider.offers()[0], spec, token="t-1", join_token=CANARY)

    script = account.script(name)
    assert script.count(CANARY) + script.count(ENCODED) == 1
    tags = json.dumps(account.cloud.tags(name))
    listed = "".join(i.model_dump_json() for i in provider.list_instances())
    for key in account.keys:
        assert key not in script + tags + listed + caplog.text
    for secret in (CANARY, ENCODED):
        assert secret not in tags + listed + caplog.text


@pytest.mark.parametrize("call", [Provider.launch, GangProvider.launch_gang])
def test_no_call_of_the_port_has_a_place_for_the_clusters_token(
    call: Callable[..., object],
) -> None:
    names = set(inspect.signature(call).parameters)

    assert names <= {"self", "offer", "spec", "specs", "token", "join_token", "join_tokens"}

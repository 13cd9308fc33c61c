"""Google Cloud: the port's contract, and what a launch asks for, against the emulated API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from hybrid.core.errors import (
    InvalidRequestError,
)
from hybrid.core.models import CloudState, LaunchSpec
from providers.gcp import GcpProvider
from providers.gcp.launching import request_id
from providers.gcp.naming import instance_name
from tests.emulators.gcp import PROJECT
from tests.providers.contract import ProviderContract, end, launch, listed, live, make_spec
from tests.providers.gang_contract import GangContract
from tests.providers.gcp_cloud import POOL, ZONE, GcpCloud, gcp_cloud

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


class TestContract(GangContract, ProviderContract):
    """Every promise of the port."""

    @pytest.fixture
    def provider(self, cloud: GcpCloud) -> GcpProvider:
        return cloud.provider()


def instance(cloud: GcpCloud) -> dict[str, Any]:
    """Return the one machine that exists, as Google has it."""
    (only,) = cloud.emulator.cloud.instances.values()
    return only


def wait_until_gone(cloud: GcpCloud) -> None:
    end_s = time.monotonic() + 10
    while cloud.names():
        assert time.monotonic() < end_s
        time.sleep(0.01)
        with cloud.emulator.cloud.lock:
            cloud.emulator.cloud.settle()


# --- the create call ----------------------------------------------------------------------


def test_a_launch_takes_two_calls(cloud: GcpCloud) -> None:
    launch(cloud.provider(), make_spec(cloud))

    assert [record.method for record in cloud.emulator.api.log] == [
        "instances.insert",
        "zoneOperations.wait",
    ]


def test_the_request_id_and_the_name_come_from_the_token_and_the_intent(cloud: GcpCloud) -> None:
    spec = make_spec(cloud)

    provider_id = launch(cloud.provider(), spec, token="t-1")

    record = cloud.emulator.api.log[0]
    name = instance_name(spec.cluster_id, spec.instance_id, 1)
    assert record.query["requestId"] == request_id("t-1")
    assert provider_id == f"projects/{PROJECT}/zones/{ZONE}/instances/{name}"


def test_a_machine_can_die_alone_and_leaves_nothing(cloud: GcpCloud) -> None:
    launch(cloud.provider(max_life="12h"), make_spec(cloud))

    made = instance(cloud)
    assert made["scheduling"] == {
        "provisioningModel": "STANDARD",
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        "maxRunDuration": {"seconds": "43200"},
        "instanceTerminationAction": "DELETE",
    }
    (disk,) = made["disks"]
    assert disk["autoDelete"] is True
    assert disk["initializeParams"]["labels"] == made["labels"]


def test_a_spot_machine_is_deleted_when_it_is_taken_back(cloud: GcpCloud) -> None:
    cloud.pools[0]["use_spot"] = True
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    made = instance(cloud)

    with cloud.emulator.cloud.lock:
        cloud.emulator.cloud.preempt((PROJECT, ZONE, made["name"]))

    assert made["scheduling"]["provisioningModel"] == "SPOT"
    assert listed(provider)[provider_id].state is CloudState.STOPPING
    wait_until_gone(cloud)
    assert listed(provider) == {}


def test_a_pool_is_rented_as_it_is_written(cloud: GcpCloud) -> None:
    cloud.pools = [
        POOL
        | {
            "instance_type": "n1-standard-8",
            "accelerators": "T4:2",
            "attached_gpu": "nvidia-tesla-t4",
            "disk": "200GB",
            "disk_type": "pd-ssd",
            "network_tags": ["hybrid-node"],
            "service_account": "node@test-project.iam.gserviceaccount.com",
            "external_ip": True,
            "subnetwork": "hybrid",
        }
    ]

    launch(cloud.provider(tags={"team": "ml"}), make_spec(cloud))

    made = instance(cloud)
    assert made["machineType"].endswith(f"/zones/{ZONE}/machineTypes/n1-standard-8")
    (gpu,) = made["guestAccelerators"]
    assert gpu["acceleratorType"] == f"zones/{ZONE}/acceleratorTypes/nvidia-tesla-t4"
    assert gpu["acceleratorCount"] == 2
    (disk,) = made["disks"]
    assert disk["initializeParams"]["diskSizeGb"] == "187"  # GiB, and no less than was asked
    assert disk["initializeParams"]["diskType"] == f"zones/{ZONE}/diskTypes/pd-ssd"
    assert made["tags"] == {"items": ["hybrid-node"]}
    assert made["serviceAccounts"][0]["email"].startswith("node@")
    (network,) = made["networkInterfaces"]
    assert network["subnetwork"] == f"projects/{PROJECT}/regions/us-central1/subnetworks/hybrid"
    assert network["accessConfigs"][0]["type"] == "ONE_TO_ONE_NAT"
    assert made["labels"]["team"] == "ml"


def test_by_itself_a_machine_has_no_rights_and_no_public_address(cloud: GcpCloud) -> None:
    launch(cloud.provider(), make_spec(cloud))

    assert "serviceAccounts" not in instance(cloud)
    assert "accessConfigs" not in instance(cloud)["networkInterfaces"][0]


def test_tags_that_are_no_labels_come_back_as_they_were(cloud: GcpCloud) -> None:
    spec = make_spec(cloud)
    strange = {"Owner": "Zoë A. <z@example.com>", "9-lives": "", "x__y": "a_b"}

    provider_id = launch(cloud.provider(), spec.model_copy(update={"tags": strange}))

    assert cloud.tags(provider_id).items() >= strange.items()


def test_a_second_attempt_is_another_machine(cloud: GcpCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    first = launch(provider, spec, token="one")
    end(provider, first)

    second = launch(provider, spec.model_copy(update={"attempt": 2}), token="two")

    assert second != first
    assert live(provider) == [second]
    assert listed(provider)[second].instance_id == spec.instance_id


def test_launches_from_many_threads_are_as_good_as_one_after_another(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    specs = [make_spec(cloud) for _ in range(12)] * 2  # each twice, at the same moment

    with ThreadPoolExecutor(24) as pool:
        ids = list(pool.map(lambda spec: launch(provider, spec), specs))

    assert ids[:12] == ids[12:]
    assert sorted(live(provider)) == sorted(set(ids))
    assert len(set(ids)) == 12


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster_id": "not-ours"}, "is not this cluster"),
        ({"labels": {"site": "a,b=c"}}, "not a value for Ray"),
        ({"head_address": "nowhere"}, "write HOST:PORT"),
        ({"tags": {"note": "x" * 64}}, "tag 'note' does not fit"),
        ({"tags": {"note": "Ω" * 20}}, "tag 'note' does not fit"),
        ({"tags": {f"t-{n}": "" for n in range(70)}}, "labels are too many"),
        ({"controller_url": "http://x/" + "y" * 16_384}, "16384"),
    ],
    ids=["cluster", "label", "head", "long-tag", "wide-tag", "many-tags", "user-data"],
)
def test_a_spec_that_cannot_be_is_refused_for_good_without_a_call(
    cloud: GcpCloud, changes: dict[str, Any], words: str
) -> None:
    spec: LaunchSpec = make_spec(cloud).model_copy(update=changes)

    with pytest.raises(InvalidRequestError, match=words):
        launch(cloud.provider(), spec, token="t")

    assert cloud.emulator.api.log == []


def test_the_entry_point_makes_the_provider(cloud: GcpCloud) -> None:
    entry = EntryPoint("gcp", "providers.gcp:make", "hybrid.providers")
    raw = {**cloud.settings, "pools": cloud.pools}

    provider = entry.load()("gcp", raw, cloud.provider()._context)

    assert isinstance(provider, GcpProvider)
    assert provider.offers()[0].offer_id == f"gcp/us-central1/{ZONE}/g2-standard-8/on_demand"
    assert provider.list_lag_s == 1.0

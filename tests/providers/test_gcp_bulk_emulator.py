"""The emulated `instances.bulkInsert`: all or none, and fault found with what Google refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.emulators.gcp import PROJECT, GcpEmulator, start
from tests.emulators.gcp.answers import ApiError
from tests.emulators.gcp.rules import check_bulk

pytestmark = pytest.mark.slow

ZONE = "us-central1-a"
PROPERTIES: dict[str, Any] = {
    "machineType": "g2-standard-8",
    "scheduling": {"onHostMaintenance": "TERMINATE"},
    "disks": [
        {"initializeParams": {"sourceImage": f"projects/{PROJECT}/global/images/hybrid-node-1"}}
    ],
    "networkInterfaces": [{"network": "global/networks/default"}],
}
BODY: dict[str, Any] = {
    "count": "2",
    "perInstanceProperties": {"a": {}, "b": {}},
    "instanceProperties": PROPERTIES,
}


@pytest.fixture
def emulator() -> Iterator[GcpEmulator]:
    made = start()
    made.api.needs_token = False
    try:
        yield made
    finally:
        made.stop()


def zone_url(emulator: GcpEmulator) -> str:
    return f"{emulator.url}/compute/v1/projects/{PROJECT}/zones/{ZONE}"


def post(emulator: GcpEmulator, body: object) -> httpx.Response:
    return httpx.post(f"{zone_url(emulator)}/instances/bulkInsert", json=body)


def ended(emulator: GcpEmulator, operation: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(f"{zone_url(emulator)}/operations/{operation['name']}/wait")
    return dict(answer.json())


def test_all_are_made(emulator: GcpEmulator) -> None:
    operation = ended(emulator, post(emulator, BODY).json())

    assert (operation["operationType"], operation["status"]) == ("bulkInsert", "DONE")
    assert "error" not in operation
    (status,) = operation["instancesBulkInsertOperationMetadata"]["perLocationStatus"].values()
    assert (status["targetVmCount"], status["createdVmCount"]) == (2, 2)
    names = {name: made["status"] for (_, _, name), made in emulator.cloud.instances.items()}
    assert names == {"a": "RUNNING", "b": "RUNNING"}
    assert emulator.api.violations == []


def test_without_one_there_is_none_and_the_cause_comes_second(emulator: GcpEmulator) -> None:
    emulator.cloud.looks_first = False
    emulator.cloud.capacity[ZONE, "g2-standard-8"] = 1

    operation = ended(emulator, post(emulator, BODY).json())

    codes = [error["code"] for error in operation["error"]["errors"]]
    assert codes == ["VM_MIN_COUNT_NOT_REACHED", "ZONE_RESOURCE_POOL_EXHAUSTED"]
    assert emulator.cloud.instances == {}
    assert emulator.cloud.capacity[ZONE, "g2-standard-8"] == 1
    assert emulator.api.violations == []


def test_what_cannot_be_had_is_refused_at_once(emulator: GcpEmulator) -> None:
    emulator.cloud.capacity[ZONE, "g2-standard-8"] = 1
    no_stock = post(emulator, BODY)
    emulator.cloud.quotas["us-central1", "NVIDIA_L4_GPUS"] = 1
    no_quota = post(emulator, BODY)

    reasons = [r.json()["error"]["errors"][0]["reason"] for r in (no_stock, no_quota)]
    assert [no_stock.status_code, no_quota.status_code] == [503, 403]
    assert reasons == ["insufficientCapacity", "quotaExceeded"]
    assert emulator.cloud.operations.by_name == {}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"count": 2}, "count: expected text"),
        ({"perInstanceProperties": {"a": {}, "b": {"name": "b"}}}, "only the cloud sets this"),
        ({"perInstanceProperties": {"a": {}, "b": {"labels": {}}}}, "no such field"),
        ({"instanceProperties": {**PROPERTIES, "name": "x"}}, "name: no such field"),
    ],
)
def test_a_body_that_google_does_not_know_is_a_violation(
    emulator: GcpEmulator, changes: dict[str, Any], problem: str
) -> None:
    response = post(emulator, BODY | changes)

    assert response.status_code == 400
    assert any(problem in found for found in emulator.api.violations)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"count": "0"}, "resource.count"),
        ({"count": "5001"}, "resource.count"),
        ({"count": "3"}, "must be count"),
        ({"minCount": "3"}, "more than count"),
        ({"perInstanceProperties": {}}, "Either namePattern"),
        ({"namePattern": "x-#"}, "Either namePattern"),
        ({"perInstanceProperties": {"A": {}, "b": {}}}, "perInstanceProperties.key"),
    ],
    ids=str,
)
def test_what_google_refuses_beyond_its_schema_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ApiError) as caught:
        check_bulk(BODY | changes)

    assert caught.value.status == 400
    assert words in caught.value.message


def test_addresses_are_refused_where_names_are_needed() -> None:
    machine = PROPERTIES | {"machineType": f"zones/{ZONE}/machineTypes/g2-standard-8"}
    disk = {"initializeParams": {"diskType": f"zones/{ZONE}/diskTypes/pd-ssd"}}

    with pytest.raises(ApiError) as of_machine:
        check_bulk(BODY | {"instanceProperties": machine})
    with pytest.raises(ApiError) as of_disk:
        check_bulk(BODY | {"instanceProperties": PROPERTIES | {"disks": [disk]}})

    assert of_machine.value.status == 500  # Google's own words: INTERNAL_ERROR
    assert "a name is needed" in of_disk.value.message

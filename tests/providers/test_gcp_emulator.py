"""The emulated Google Cloud finds fault with what Google's own description does not allow."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.emulators.gcp import PROJECT, GcpEmulator, start
from tests.emulators.gcp.discovery import document
from tests.emulators.gcp.filters import FilterError, matches
from tests.emulators.gcp.rules import check_insert

pytestmark = pytest.mark.slow

ZONE = "us-central1-a"
BODY: dict[str, Any] = {
    "name": "x",
    "machineType": f"zones/{ZONE}/machineTypes/g2-standard-8",
    "scheduling": {"onHostMaintenance": "TERMINATE"},
    "disks": [
        {"initializeParams": {"sourceImage": f"projects/{PROJECT}/global/images/hybrid-node-1"}}
    ],
    "networkInterfaces": [{"network": "global/networks/default"}],
}


@pytest.fixture
def emulator() -> Iterator[GcpEmulator]:
    made = start()
    made.api.needs_token = False
    try:
        yield made
    finally:
        made.stop()


def post(emulator: GcpEmulator, body: object, query: str = "", zone: str = ZONE) -> httpx.Response:
    path = f"/compute/v1/projects/{PROJECT}/zones/{zone}/instances{query}"
    return httpx.post(emulator.url + path, json=body)


def test_a_good_request_has_a_good_answer(emulator: GcpEmulator) -> None:
    response = post(emulator, BODY)

    assert response.status_code == 200
    assert response.json()["operationType"] == "insert"
    assert emulator.api.violations == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"nmae": "x"}, "Instance.nmae: no such field"),
        ({"name": 5}, "Instance.name: expected text, got 5"),
        ({"name": "Big_Name"}, "does not match"),
        ({"name": None}, "Instance.name: expected text"),
        ({"name": ""}, "Instance.name: '' does not match"),
        ({"labels": {"a": 1}}, "Instance.labels[a]: expected text"),
        ({"labels": []}, "Instance.labels: expected an object"),
        ({"disks": {}}, "Instance.disks: expected a list"),
        ({"scheduling": {"provisioningModel": "SPOTTY"}}, "'SPOTTY' is none of"),
        ({"scheduling": {"automaticRestart": "no"}}, "expected true or false"),
        ({"scheduling": {"maxRunDuration": {"seconds": 5}}}, "seconds: expected text"),
        ({"scheduling": {"maxRunDuration": {"seconds": "5s"}}}, "expected a int64 as text"),
        ({"scheduling": {"maxRunDuration": {"nanos": "5"}}}, "expected a whole number"),
        ({"metadata": {"fingerprint": "not base64!"}}, "expected base64"),
        ({"metadata": {"items": [{"value": "x"}]}}, "items[0].key: required"),
        ({"status": "RUNNING"}, "Instance.status: only the cloud sets this"),
    ],
    ids=str,
)
def test_a_body_that_google_does_not_know_is_a_violation(
    emulator: GcpEmulator, changes: dict[str, Any], problem: str
) -> None:
    response = post(emulator, BODY | changes)

    assert response.status_code == 400
    assert any(problem in found for found in emulator.api.violations)


@pytest.mark.parametrize(
    ("verb", "path", "problem"),
    [
        ("GET", "/aggregated/instances?maxResult=5", "maxResult: no such parameter"),
        ("GET", "/aggregated/instances?maxResults=five", "expected a whole number"),
        ("GET", "/aggregated/instances?maxResults=-1", "out of range"),
        ("GET", "/aggregated/instances?includeAllScopes=yes", "expected true or false"),
        ("GET", "/zones/US/instances/x", "does not match"),
        ("GET", "/zones/us-central1-a/instance/x", "no such method"),
        ("PUT", "/zones/us-central1-a/instances", "no such method"),
        ("POST", "/zones/us-central1-a/instances", "expected an object, got None"),
    ],
)
def test_a_request_that_google_does_not_know_is_a_violation(
    emulator: GcpEmulator, verb: str, path: str, problem: str
) -> None:
    response = httpx.request(verb, f"{emulator.url}/compute/v1/projects/{PROJECT}{path}")

    assert response.status_code in (400, 404)
    assert any(problem in found for found in emulator.api.violations)


def test_an_answer_that_google_would_not_give_is_a_violation(emulator: GcpEmulator) -> None:
    post(emulator, BODY)
    emulator.cloud.instances[PROJECT, ZONE, "x"]["cpuPlatform"] = 5

    httpx.get(f"{emulator.url}/compute/v1/projects/{PROJECT}/zones/{ZONE}/instances/x")

    assert "cpuPlatform: expected text" in emulator.api.violations[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": {"Big": "x"}}, "Label key is invalid"),
        ({"labels": {"a": "x" * 64}}, "Label value is invalid"),
        ({"labels": {f"a{n}": "" for n in range(65)}}, "more than 64 labels"),
        ({"metadata": {"items": [{"key": "a", "value": "x" * 262_145}]}}, "too large"),
        ({"metadata": {"items": [{"key": "a", "value": ""}] * 2}}, "duplicate keys"),
        ({"scheduling": {}}, "do not support live migration"),
        ({"tags": {"items": ["Node"]}}, "resource.tags.items"),
        ({"machineType": "zones/us-east1-b/machineTypes/g2-standard-8"}, "resource.machineType"),
    ],
    ids=["key", "value", "many", "large", "twice", "gpu", "tag", "elsewhere"],
)
def test_what_google_refuses_beyond_its_schema_is_refused(
    emulator: GcpEmulator, changes: dict[str, Any], words: str
) -> None:
    response = post(emulator, BODY | changes)

    assert response.status_code == 400
    assert words in response.json()["error"]["message"]
    assert emulator.api.violations == []


@pytest.mark.parametrize(
    ("scheduling", "words"),
    [
        ({"provisioningModel": "SPOT"}, "automaticRestart must be disabled"),
        ({"maxRunDuration": {"seconds": "60"}}, "must be specified"),
        ({"maxRunDuration": {"seconds": "5"}}, "Out of range"),
        ({"instanceTerminationAction": "DELETE"}, "only for Spot"),
    ],
    ids=["restart", "no-action", "too-short", "no-limit"],
)
def test_schedules_that_contradict_themselves_are_refused(
    scheduling: dict[str, Any], words: str
) -> None:
    body = BODY | {"scheduling": {**scheduling, "onHostMaintenance": "TERMINATE"}}
    if words.startswith("automatic"):
        body["scheduling"]["automaticRestart"] = True

    with pytest.raises(Exception, match=words):
        check_insert(PROJECT, ZONE, body)


@pytest.mark.parametrize("request_id", ["x", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_must_be_a_uuid(emulator: GcpEmulator, request_id: str) -> None:
    response = post(emulator, BODY, f"?requestId={request_id}")

    assert response.status_code == 400


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("", True),
        ('labels.a-b = "c"', True),
        ("labels.a-b=d", False),
        ("labels.a-b:*", True),
        ("labels.none:*", False),
        ("(status = RUNNING) AND (labels.a-b != d)", True),
        ("(status = RUNNING)(labels.a-b = d)", False),
        ('scheduling.model = "x y"', True),
    ],
)
def test_filters_are_read_as_google_reads_them(text: str, is_match: bool) -> None:
    resource = {"labels": {"a-b": "c"}, "status": "RUNNING", "scheduling": {"model": "x y"}}

    assert matches(text, resource) is is_match


@pytest.mark.parametrize("text", ["labels", "a = ", "a ~ b", "OR"])
def test_a_filter_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        matches(text, {})


def test_it_is_told_to_misbehave_over_http(emulator: GcpEmulator) -> None:
    def tell(what: str, **facts: object) -> int:
        return httpx.post(f"{emulator.url}/_control/{what}", json=facts).status_code

    assert tell("capacity", zone=ZONE, type="g2-standard-8", count=0) == 200
    assert tell("quota", region="us-central1", metric="NVIDIA_L4_GPUS", limit=0) == 200
    assert tell("cloud", list_lag_s=5) == 200
    assert tell("fault", status=429) == 200
    assert (tell("fault", statsu=429), tell("cloud", nothing=1), tell("x")) == (400, 400, 400)

    assert post(emulator, BODY).status_code == 429
    assert httpx.get(f"{emulator.url}/_control/log").json()["log"][0]["status"] == 429
    assert emulator.cloud.list_lag_s == 5


def test_the_description_is_the_one_this_was_written_for() -> None:
    """A newer one is no mistake, but its changes want to be looked at."""
    assert document().revision >= "20261106"


def test_it_runs_alone() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.emulators", "gcp"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = "".join(iter(process.stdout.readline, "Ctrl-C ends it.\n"))
        url = re.findall(r"endpoint_url: (\S+)", lines)[0]
        key_file = re.findall(r"GOOGLE_APPLICATION_CREDENTIALS=(\S+)", lines)[0]

        assert httpx.get(f"{url}/_control/log").json() == {"log": [], "violations": []}
        assert Path(key_file).exists()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        process.communicate()
    assert not Path(key_file).exists()

"""Google Cloud in trouble: what each refusal, silence and nonsense becomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaError,
    Scope,
    ThrottledError,
    TransientError,
)
from providers.gcp.errors import Failure, kind_of, translated
from tests.emulators.gcp import PROJECT
from tests.emulators.gcp.auth import ServiceAccount
from tests.providers.contract import launch, live, make_spec
from tests.providers.gcp_cloud import ZONE, GcpCloud, gcp_cloud

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


# --- what Google answers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 400, "reason": "invalid"}, InvalidRequestError),
        ({"status": 400, "reason": "required"}, InvalidRequestError),
        ({"status": 400, "reason": "resourceNotReady"}, TransientError),
        ({"status": 401, "reason": "authError"}, AuthError),
        ({"status": 403, "reason": "forbidden"}, AuthError),
        ({"status": 403, "reason": "accessNotConfigured"}, AuthError),
        ({"status": 403, "reason": "quotaExceeded"}, QuotaError),
        ({"status": 403, "reason": "rateLimitExceeded"}, ThrottledError),
        ({"status": 429, "reason": "rateLimitExceeded"}, ThrottledError),
        ({"status": 404, "reason": "notFound"}, InvalidRequestError),
        ({"status": 412, "reason": "conditionNotMet"}, TransientError),
        ({"status": 500, "reason": "backendError"}, TransientError),
        ({"status": 503, "reason": "backendError"}, TransientError),
        ({"status": 503, "reason": "insufficientCapacity"}, CapacityError),
        ({"status": 418, "reason": "aReasonOfTomorrow"}, ProviderError),
        ({"status": 403, "is_html": True}, AuthError),
        ({"status": 502, "is_html": True}, TransientError),
        ({"is_html": True}, TransientError),  # a proxy's page, with 200
    ],
    ids=str,
)
def test_a_refused_launch_is_an_error_of_the_port(
    cloud: GcpCloud, fault: dict[str, Any], kind: type[ProviderError]
) -> None:
    times = 3 if fault.get("status") == 401 else 1  # the SDK gets a new token, twice
    cloud.emulator.faults.add(times=times, **fault)
    provider = cloud.provider()

    with pytest.raises(ProviderError) as caught:
        launch(provider, make_spec(cloud))

    assert type(caught.value) is kind
    assert caught.value.provider == "gcp"
    assert cloud.calls("instances.insert") == times  # no retries behind our back


@pytest.mark.parametrize(
    "call",
    [
        lambda provider, id_: provider.list_instances(),
        lambda provider, id_: provider.terminate([id_]),
        lambda provider, id_: provider.extend([id_], until_s=0.0),
    ],
    ids=["list", "terminate", "extend"],
)
@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_a_call_in_trouble_is_made_once_and_proves_nothing(
    cloud: GcpCloud, call: Callable[[Any, str], object], status: int
) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.faults.add(method="instances.*", status=status, times=9)
    before = len(cloud.emulator.api.log)

    with pytest.raises(ProviderError) as caught:
        call(provider, provider_id)

    assert not isinstance(caught.value, NotFoundError)
    expected = 3 if status == 401 else 1
    assert len(cloud.emulator.api.log) - before == expected
    cloud.emulator.faults.waiting.clear()
    assert live(provider) == [provider_id]


def test_an_answer_that_takes_too_long_leaves_the_outcome_open(cloud: GcpCloud) -> None:
    cloud.emulator.faults.add(is_after=True, delay_s=0.5)
    provider, spec = cloud.provider(call_timeout="200ms"), make_spec(cloud)

    with pytest.raises(TransientError, match="timed out"):
        launch(provider, spec)

    assert [launch(cloud.provider(), spec)] == live(cloud.provider())


def test_a_cloud_that_is_not_there_leaves_the_outcome_open(cloud: GcpCloud) -> None:
    provider = cloud.provider(endpoint_url="http://127.0.0.1:9")

    with pytest.raises(TransientError, match="list instances"):
        provider.list_instances()


def test_an_error_says_what_where_and_what_to_do(cloud: GcpCloud) -> None:
    cloud.emulator.api.granted = {"compute.instances.list"}

    with pytest.raises(AuthError) as caught:
        launch(cloud.provider(), make_spec(cloud))

    words = str(caught.value)
    assert words.startswith(
        f"Google Cloud, launch projects/{PROJECT}/zones/{ZONE}/instances/hybrid"
    )
    assert "Required 'compute.instances.create' permission" in words
    assert "check the credentials" in words
    assert "\n" not in words


def test_a_refusal_that_repeats_the_request_gives_no_secret_away(cloud: GcpCloud) -> None:
    message = "Invalid value for field 'resource.metadata.items[0].value': 'write join-once'"
    cloud.emulator.faults.add(status=400, message=message)

    with pytest.raises(InvalidRequestError) as caught:
        launch(cloud.provider(), make_spec(cloud))

    assert "'write ***'" in str(caught.value)
    assert "join-once" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure("quotaExceeded", "", 403), QuotaError),
        (Failure("QUOTA_EXCEEDED", "", 0), QuotaError),
        (Failure("ALREADY_EXISTS", "", 0), ConflictError),
        (Failure("", "", 409), ConflictError),
        (Failure("", "", 404), NotFoundError),
        (Failure("", "", 599), TransientError),
        (Failure("", "", 0), ProviderError),
    ],
    ids=str,
)
def test_the_code_decides_and_then_the_status(failure: Failure, kind: type[ProviderError]) -> None:
    assert kind_of(failure) is kind


@pytest.mark.parametrize(
    ("failure", "scope"),
    [
        (Failure("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 0.0"), Scope.POOL),
        (Failure("QUOTA_EXCEEDED", "Quota 'SSD_TOTAL_GB' exceeded.  Limit: 1.0"), Scope.REGION),
        (Failure("QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded."), Scope.ACCOUNT),
        (Failure("QUOTA_EXCEEDED", "something new"), Scope.REGION),
        (Failure("STOCKOUT", ""), Scope.POOL),
        (Failure("rateLimitExceeded", "", 403), Scope.ACCOUNT),
        (Failure("forbidden", "", 403), Scope.ACCOUNT),
        (Failure("forbidden", "Required 'compute.instances.create' permission"), Scope.ACCOUNT),
        (Failure("forbidden", "Required 'compute.images.useReadOnly' permission"), Scope.POOL),
        (Failure("invalid", "", 400), Scope.POOL),
    ],
    ids=str,
)
def test_a_failure_reaches_as_far_as_its_cause(failure: Failure, scope: Scope) -> None:
    assert translated(failure, provider="gcp", doing="launch").scope is scope


# --- credentials --------------------------------------------------------------------------


def test_missing_credentials_are_named(cloud: GcpCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nonexistent")

    with pytest.raises(AuthError, match="application-default login"):
        launch(cloud.provider(), make_spec(cloud))

    assert cloud.emulator.api.log == []


@pytest.mark.parametrize("content", [None, "{", "[]", '{"type": "service_account"}', "\x00"])
def test_a_credentials_file_that_is_none_is_an_auth_error(
    cloud: GcpCloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "key.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    with pytest.raises(AuthError):
        cloud.provider().list_instances()


def test_credentials_are_looked_for_again_after_they_were_wrong(
    cloud: GcpCloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = os.environ["GOOGLE_APPLICATION_CREDENTIALS"]
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    provider = cloud.provider()
    with pytest.raises(AuthError):
        provider.list_instances()

    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", good)

    assert provider.list_instances() == []


@pytest.mark.parametrize("name", ["hybrid-launcher", "another"])
def test_a_key_that_google_does_not_know_is_an_auth_error(
    cloud: GcpCloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    file = ServiceAccount(PROJECT, name).write_key(tmp_path / "key.json")
    content = json.loads(file.read_text())
    if name == "hybrid-launcher":
        content["private_key_id"] = "deleted-key"
        file.write_text(json.dumps(content))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    with pytest.raises(AuthError, match="invalid authentication credentials"):
        cloud.provider().list_instances()


@pytest.mark.parametrize("skew_s", [-3_000.0, 7_200.0], ids=["ahead", "behind"])
def test_a_clock_that_is_wrong_is_an_auth_error_that_speaks_of_clocks(
    cloud: GcpCloud, skew_s: float
) -> None:
    """Tokens of a service account are signed here and dated by this machine's clock."""
    cloud.emulator.cloud.clock_skew_s = skew_s

    with pytest.raises(AuthError, match="this machine's clock"):
        cloud.provider().list_instances()


# --- what does not exist ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ({"infra": "gcp/mars-north1/mars-north1-a"}, "Unknown zone"),
        ({"image": "projects/test-project/global/images/family/none"}, "images/family/none"),
        ({"instance_type": "g9-standard-8"}, "machineTypes/g9-standard-8"),
        ({"subnetwork": "nowhere"}, "subnetworks/nowhere' was not found"),
        (
            {"subnetwork": "projects/test-project/regions/us-east1/subnetworks/default"},
            "not in the region",
        ),
    ],
    ids=["zone", "image", "type", "subnetwork", "subnetwork-elsewhere"],
)
def test_what_does_not_exist_stops_the_offer(
    cloud: GcpCloud, pool: dict[str, Any], words: str
) -> None:
    cloud.pools[0] |= pool

    with pytest.raises(InvalidRequestError, match=words):
        launch(cloud.provider(), make_spec(cloud))

    assert cloud.names() == []


def test_a_project_that_does_not_exist_ends_no_instance(cloud: GcpCloud) -> None:
    """A mistyped project must not prove anything about the machines of the right one."""
    provider_id = launch(cloud.provider(), make_spec(cloud))
    lost = cloud.provider(project="mistyped-project")
    elsewhere = provider_id.replace(PROJECT, "mistyped-project")

    for call in (
        lost.list_instances,
        lambda: lost.terminate([elsewhere]),
        lambda: lost.terminate([elsewhere, elsewhere + "x"]),
        lambda: lost.extend([elsewhere], until_s=0.0),
    ):
        with pytest.raises(InvalidRequestError):
            call()

    lost.terminate([provider_id])  # asked for where it is


# --- the SDK stays away -------------------------------------------------------------------

_ALONE = """
import sys
from hybrid.adapters.clock import SystemClock
from hybrid.core.ports import ProviderContext
from providers.gcp import make
from tests.providers.gcp_cloud import POOL, SETTINGS

context = ProviderContext(cluster_id="c", cluster_name="n", state_dir="", ray_dir="",
                          clock=SystemClock())
before = set(sys.modules)
provider = make("gcp", {**SETTINGS, "pools": [POOL]}, context)
assert provider.offers()
new = {name.partition(".")[0] for name in sys.modules} & {"google", "requests", "grpc"}
print(sorted(new))
"""


def test_offers_need_no_sdk() -> None:
    code = _ALONE.replace("from tests.providers.gcp_cloud import POOL, SETTINGS", _settings())

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def _settings() -> str:
    from tests.providers.gcp_cloud import POOL, SETTINGS

    return f"POOL, SETTINGS = {POOL!r}, {SETTINGS!r}"

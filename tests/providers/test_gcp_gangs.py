"""Google Cloud: gangs, rented whole in one call, and what becomes of one that is not whole."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    InvalidRequestError,
    ProviderError,
    QuotaError,
    ThrottledError,
    TransientError,
)
from providers.gcp.launching import request_id
from providers.gcp.offers import MOST_TOGETHER
from tests.emulators.gcp import PROJECT
from tests.providers.contract import end, launch, live, make_spec
from tests.providers.gang_contract import launch_gang, make_gang
from tests.providers.gcp_cloud import POOL, ZONE, GcpCloud, gcp_cloud, instances, methods, name_of
from tests.providers.test_gcp_instances import documented

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


# --- the create call ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, MOST_TOGETHER])
def test_a_gang_of_any_size_takes_two_calls(cloud: GcpCloud, count: int) -> None:
    provider_ids = launch_gang(cloud.provider(), make_gang(cloud, count))

    assert methods(cloud) == ["instances.bulkInsert", "zoneOperations.wait"]
    assert len(set(provider_ids.values())) == len(cloud.names()) == count


def test_singles_take_two_calls_each_and_gangs_far_less(cloud: GcpCloud) -> None:
    """What the API's rate limits allow in a minute depends on this."""
    provider = cloud.provider()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda spec: launch(provider, spec), [make_spec(cloud) for _ in range(10)]))
    singles = len(methods(cloud))

    launch_gang(provider, make_gang(cloud, 10))

    assert singles / 10 <= 2.2
    assert (len(methods(cloud)) - singles) / 10 <= 0.2
    assert len(cloud.names()) == 20


def test_the_call_names_each_machine_and_takes_no_fewer(cloud: GcpCloud) -> None:
    specs = make_gang(cloud)

    provider_ids = launch_gang(cloud.provider(), specs, token="t-1")

    record = cloud.emulator.api.log[0]
    assert record.query["requestId"] == request_id("t-1")
    assert record.body["count"] == record.body["minCount"] == "3"
    assert record.body["perInstanceProperties"] == {name_of(spec): {} for spec in specs}
    for spec in specs:
        where = f"projects/{PROJECT}/zones/{ZONE}/instances/{name_of(spec)}"
        assert provider_ids[spec.instance_id] == where


def test_the_machines_of_a_gang_are_what_single_ones_are(cloud: GcpCloud) -> None:
    cloud.pools = [
        POOL
        | {
            "instance_type": "n1-standard-8",
            "accelerators": "T4:2",
            "attached_gpu": "nvidia-tesla-t4",
            "disk_type": "pd-ssd",
            "network_tags": ["hybrid-node"],
            "service_account": "node@test-project.iam.gserviceaccount.com",
            "external_ip": True,
            "use_spot": True,
        }
    ]
    provider = cloud.provider(tags={"team": "ml"})
    launch(provider, make_spec(cloud))
    (single,) = instances(cloud)

    launch_gang(provider, make_gang(cloud, 2))

    own = ("name", "id", "selfLink", "creationTimestamp", "lastStartTimestamp", "resourceStatus")
    told = ("metadata", "fingerprint", "labels", "labelFingerprint", "disks", "networkInterfaces")
    for member in [made for made in instances(cloud) if made is not single]:
        for key in single.keys() - {*own, *told}:
            assert member[key] == single[key], key
        (disk,), (alone,) = member["disks"], single["disks"]
        for key in ("sourceImage", "diskSizeGb", "diskType"):
            assert disk["initializeParams"][key] == alone["initializeParams"][key]
        assert disk["autoDelete"] is True
        assert disk["initializeParams"]["labels"] == member["labels"]
        (net,), (single_net,) = member["networkInterfaces"], single["networkInterfaces"]
        assert net["accessConfigs"] == single_net["accessConfigs"]
        assert member["labels"]["team"] == "ml"
        assert member["labels"]["hybrid-gang"] == "2"


def test_a_gang_of_the_largest_size_fits_into_a_script_with_long_labels(cloud: GcpCloud) -> None:
    labels = {f"label-{n}": "x" * 60 for n in range(20)}
    specs = [spec.model_copy(update={"labels": labels}) for spec in make_gang(cloud, MOST_TOGETHER)]
    tokens = {spec.instance_id: "f" * 64 for spec in specs}
    provider = cloud.provider()

    provider.launch_gang(provider.offers()[0], specs, token="t", join_tokens=tokens)

    (script,) = {made["metadata"]["items"][0]["value"] for made in instances(cloud)}
    assert len(script.encode()) < 12_000
    assert all(spec.instance_id in script for spec in specs)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster_id": "not-ours"}, "is not this cluster"),
        ({"gang": ("i-1",)}, "do not name each other"),
        ({"gang": ()}, "do not name each other"),
        ({"head_address": "nowhere"}, "write HOST:PORT"),
        ({"tags": {"note": "x" * 64}}, "tag 'note' does not fit"),
        ({"controller_url": "http://x/" + "y" * 16_384}, "16384"),
    ],
    ids=["cluster", "strangers", "no-gang", "head", "long-tag", "user-data"],
)
def test_specs_that_cannot_be_are_refused_for_good_without_a_call(
    cloud: GcpCloud, changes: dict[str, Any], words: str
) -> None:
    specs = [spec.model_copy(update=changes) for spec in make_gang(cloud)]

    with pytest.raises(InvalidRequestError, match=words):
        launch_gang(cloud.provider(), specs)

    assert methods(cloud) == []


def test_specs_that_differ_are_refused_for_good_without_a_call(cloud: GcpCloud) -> None:
    first, *others = make_gang(cloud)
    other = first.model_copy(update={"epoch": 2})

    with pytest.raises(InvalidRequestError, match="differ in more"):
        launch_gang(cloud.provider(), [other, *others])

    assert methods(cloud) == []


@pytest.mark.parametrize("instance_id", ["I-1", "i_1", "-i", "i--1", "i" * 33, "ü"])
def test_an_id_that_a_name_cannot_show_is_refused_for_good(
    cloud: GcpCloud, instance_id: str
) -> None:
    specs = make_gang(cloud, 2)
    names = (instance_id, specs[1].instance_id)
    specs = [
        spec.model_copy(update={"gang": names, "instance_id": name})
        for name, spec in zip(names, specs, strict=True)
    ]

    with pytest.raises(InvalidRequestError, match="cannot be a member of a gang"):
        launch_gang(cloud.provider(), specs)

    assert methods(cloud) == []


def test_more_than_the_offer_says_are_refused_for_good(cloud: GcpCloud) -> None:
    with pytest.raises(InvalidRequestError, match="1 to 32 instances"):
        launch_gang(cloud.provider(), make_gang(cloud, MOST_TOGETHER + 1))
    with pytest.raises(InvalidRequestError):
        cloud.provider().launch_gang(cloud.provider().offers()[0], [], token="t", join_tokens={})

    assert methods(cloud) == []


# --- refused at once ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 400, "reason": "invalid"}, InvalidRequestError),
        ({"status": 403, "reason": "forbidden"}, AuthError),
        ({"status": 403, "reason": "quotaExceeded"}, QuotaError),
        ({"status": 403, "reason": "rateLimitExceeded"}, ThrottledError),
        ({"status": 404, "reason": "notFound"}, InvalidRequestError),
        ({"status": 503, "reason": "insufficientCapacity"}, CapacityError),
        ({"status": 503, "reason": "backendError"}, TransientError),
        ({"status": 502, "is_html": True}, TransientError),
    ],
    ids=str,
)
def test_a_refused_gang_is_an_error_of_the_port(
    cloud: GcpCloud, fault: dict[str, Any], kind: type[ProviderError]
) -> None:
    cloud.emulator.faults.add(method="instances.bulkInsert", **fault)

    with pytest.raises(ProviderError) as caught:
        launch_gang(cloud.provider(), make_gang(cloud))

    assert type(caught.value) is kind
    assert methods(cloud) == ["instances.bulkInsert"]
    assert cloud.names() == []


def test_too_little_quota_is_told_at_once_with_its_metric(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.quotas["us-central1", "NVIDIA_L4_GPUS"] = 2

    with pytest.raises(QuotaError, match=r"NVIDIA_L4_GPUS.*higher quota"):
        launch_gang(cloud.provider(), make_gang(cloud, 3))

    assert len(launch_gang(cloud.provider(), make_gang(cloud, 2))) == 2


def test_more_gangs_at_once_than_google_makes_are_throttled(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.provision_s = 60.0
    provider = cloud.provider(launch_wait="0s")

    def ask(_: int) -> ProviderError | None:
        try:
            launch_gang(provider, make_gang(cloud, 2))
        except ProviderError as err:
            return err
        return None

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))

    assert sum(isinstance(answer, ThrottledError) for answer in answers) == 2
    assert sum(isinstance(answer, TransientError) for answer in answers) == 10
    assert len(cloud.names()) == 20


def test_a_refusal_that_repeats_the_request_gives_no_secret_away(cloud: GcpCloud) -> None:
    specs = make_gang(cloud)
    text = f"bad script: token=join-{specs[1].instance_id};;"
    cloud.emulator.faults.add(method="instances.bulkInsert", status=400, message=text)

    with pytest.raises(InvalidRequestError) as caught:
        launch_gang(cloud.provider(), specs)

    assert "bad script: token=***" in str(caught.value)
    assert "join-i-" not in "".join(traceback.format_exception(caught.value))


# --- rights -------------------------------------------------------------------------------


def test_the_documented_permissions_are_enough_for_gangs(cloud: GcpCloud) -> None:
    cloud.emulator.api.granted = documented()
    cloud.emulator.faults.add(method="instances.bulkInsert", code="STOCKOUT", leaves=2)
    provider, specs = cloud.provider(), make_gang(cloud)
    with pytest.raises(CapacityError):
        launch_gang(provider, make_gang(cloud))

    provider_ids = launch_gang(provider, specs)
    provider.extend(provider_ids.values(), until_s=specs[0].expires_at_s + 60)
    end(provider, *provider_ids.values())

    assert live(provider) == []

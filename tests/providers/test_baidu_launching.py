"""Launches on Baidu AI Cloud: two calls, and every way they can come apart."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    InvalidRequestError,
    ProviderError,
    TransientError,
)
from hybrid.core.models import CloudState, Market
from tests.emulators.baidu import SECRET_KEY, Fault
from tests.providers.baidu_cloud import (
    CREATE,
    EXPIRY,
    RELEASE,
    SPEC,
    BaiduCloud,
    baidu_cloud,
    bcc_id,
)
from tests.providers.contract import launch, listed, live, make_spec


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    with baidu_cloud(monkeypatch) as made:
        yield made


def test_a_launch_is_two_calls(cloud: BaiduCloud) -> None:
    provider_id = launch(cloud.provider(), make_spec(cloud))

    made = [f"{r.method} {r.path}" for r in cloud.emulator.requests]
    assert made == [CREATE, f"{EXPIRY}{bcc_id(provider_id)}"]


def test_the_client_token_comes_from_ours_and_is_always_the_same(cloud: BaiduCloud) -> None:
    spec = make_spec(cloud)

    for _ in range(2):
        launch(cloud.provider(), spec, token="one")
    launch(cloud.provider(), make_spec(cloud), token="two")

    tokens = [call.query["clientToken"] for call in cloud.emulator.calls(CREATE)]
    assert tokens[0] == tokens[1] != tokens[2]
    assert all(len(token) == 40 and token.isalnum() for token in tokens)


def test_an_instance_dies_on_time_with_nobody_left(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    launch(provider, make_spec(cloud, expires_in_s=600))

    cloud.bcc.ahead_s = 610

    assert live(provider) == []
    assert cloud.bcc.living() == []


def test_a_crash_before_the_expiry_is_repaired_by_the_same_launch(cloud: BaiduCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    cloud.emulator.faults.append(Fault("drop", call=EXPIRY))
    with pytest.raises(TransientError, match="expiry is not set yet"):
        launch(provider, spec)

    provider_id = launch(cloud.provider(), spec)

    assert live(provider) == [provider_id]
    assert listed(provider)[provider_id].expires_at_s == pytest.approx(spec.expires_at_s, abs=1.0)


@pytest.mark.parametrize("kind", ["throttled", "transient"])
def test_trouble_with_the_expiry_never_reads_as_nothing_rented(
    cloud: BaiduCloud, kind: str
) -> None:
    """A `ThrottledError` would say so, and the instance exists."""
    cloud.emulator.refuse(kind, call=EXPIRY)

    with pytest.raises(TransientError, match="was created"):
        launch(cloud.provider(), make_spec(cloud))


@pytest.mark.parametrize(("kind", "error"), [("auth", AuthError), ("invalid", InvalidRequestError)])
def test_an_instance_that_may_have_no_expiry_is_given_back(
    cloud: BaiduCloud, kind: str, error: type[ProviderError]
) -> None:
    cloud.emulator.refuse(kind, call=EXPIRY)

    with pytest.raises(error, match="it was released again"):
        launch(cloud.provider(), make_spec(cloud))

    cloud.bcc.ahead_s = 1
    assert cloud.bcc.living() == []


def test_what_cannot_be_given_back_either_is_unsettled(cloud: BaiduCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    cloud.emulator.refuse("auth", call=EXPIRY)
    cloud.emulator.refuse("auth", call=RELEASE)
    with pytest.raises(TransientError, match="was created"):
        launch(provider, spec)

    launch(provider, spec)

    assert len(live(provider)) == 1


def test_an_instance_that_is_not_visible_yet_is_launched_and_extended_later(
    cloud: BaiduCloud,
) -> None:
    provider = cloud.provider()
    cloud.bcc.get_lag_s = cloud.bcc.list_lag_s = 60

    provider_id = launch(provider, make_spec(cloud))

    assert listed(provider) == {}
    cloud.bcc.ahead_s = 61
    assert listed(provider)[provider_id].expires_at_s is None
    assert provider.list_lag_s > 61


def test_a_launch_goes_where_the_pool_says(cloud: BaiduCloud) -> None:
    cloud.account |= {
        "subnets": {"cn-bj-d": "sbn-d"},
        "security_groups": ["g-1"],
        "root_disk_gb": 200,
        "key_pair": "k-1",
        "resource_group": "RESG-1",
    }
    spec = make_spec(cloud)

    launch(cloud.provider(), spec)

    body = cloud.create_call().body
    facts = {
        "spec": SPEC,
        "imageId": "m-gpu1",
        "zoneName": "cn-bj-d",
        "subnetId": "sbn-d",
        "securityGroupIds": ["g-1"],
        "rootDiskSizeInGb": 200,
        "keypairId": "k-1",
        "resGroupId": "RESG-1",
        "purchaseCount": 1,
        "name": f"hybrid-lab-{spec.instance_id}",
    }
    assert body.items() >= facts.items()
    assert "createCdsList" not in body  # an automatic release would leave data disks behind
    assert "networkCapacityInMbps" not in body  # no public address
    assert body["billing"]["paymentTiming"] == "Postpaid"
    assert "bidPrice" not in body


def test_a_spot_instance_is_bid_for_at_the_price_the_caps_count(cloud: BaiduCloud) -> None:
    cloud.pools[0] |= {"use_spot": True, "cny_per_hour": 3.3}
    provider = cloud.provider()

    launch(provider, make_spec(cloud))

    body = cloud.create_call().body
    assert body["billing"]["paymentTiming"] == "bidding"
    assert (body["bidModel"], body["bidPrice"]) == ("custom", "0.0550")  # per minute
    assert provider.offers()[0].market is Market.SPOT


def test_a_bid_below_the_market_is_a_capacity_error(cloud: BaiduCloud) -> None:
    cloud.pools[0]["use_spot"] = True
    cloud.bcc.market_cny_per_minute = 1.0

    with pytest.raises(CapacityError):
        launch(cloud.provider(), make_spec(cloud))


def test_a_spot_instance_that_is_taken_back_is_gone(cloud: BaiduCloud) -> None:
    cloud.pools[0]["use_spot"] = True
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))

    cloud.bcc.interrupt(bcc_id(provider_id))
    cloud.bcc.ahead_s = 0.15

    assert listed(provider)[provider_id].state is CloudState.GONE


def test_spot_without_an_expiry_is_no_spot(cloud: BaiduCloud) -> None:
    """Baidu's Go SDK says that only pay-as-you-go instances may have a release time."""
    cloud.pools[0]["use_spot"] = True
    cloud.bcc.refuses_expiry_of_spot = True

    with pytest.raises(InvalidRequestError, match="could cost for ever"):
        launch(cloud.provider(), make_spec(cloud))

    cloud.bcc.ahead_s = 1
    assert cloud.bcc.living() == []


def test_an_expiry_that_waits_for_the_boot_is_asked_for_again(cloud: BaiduCloud) -> None:
    cloud.bcc.boot_s = 60
    cloud.bcc.refuses_expiry_while_creating = True
    provider, spec = cloud.provider(), make_spec(cloud)
    with pytest.raises(TransientError):
        launch(provider, spec)
    assert [item.state for item in listed(provider).values()] == [CloudState.PENDING]

    cloud.bcc.ahead_s = 61
    provider_id = launch(provider, spec)

    assert listed(provider)[provider_id].expires_at_s is not None


def test_the_user_data_starts_the_node_and_holds_no_key(cloud: BaiduCloud) -> None:
    launch(cloud.provider(), make_spec(cloud))

    text = base64.b64decode(cloud.create_call().body["userData"]).decode()
    assert text.startswith("#!/bin/sh\n")
    assert "hybrid.node start" in text
    assert SECRET_KEY not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"tags": {"team": "a=b"}},
        {"tags": {"team": "x" * 66}},
        {"tags": {"": "x"}},
        {"labels": {f"label-{n}": "x" * 60 for n in range(200)}},
        {"labels": {"a": "b c"}},
    ],
    ids=["tag", "long-tag", "no-key", "long-user-data", "label"],
)
def test_what_baidu_would_not_take_is_refused_before_the_call(
    cloud: BaiduCloud, changes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequestError, match=r"takes no tag|at most 16384|label a"):
        launch(cloud.provider(), make_spec(cloud).model_copy(update=changes))

    assert cloud.emulator.requests == []


def test_a_tag_that_baidu_refuses_is_refused_for_good(cloud: BaiduCloud) -> None:
    """Should its rules be stricter than ours."""
    code = "TagExceptions.TagValueInvalid"
    cloud.emulator.faults.append(Fault("refuse", status=400, code=code))

    with pytest.raises(InvalidRequestError) as caught:
        launch(cloud.provider(), make_spec(cloud))

    assert caught.value.code == code


@pytest.mark.parametrize(
    "answer", [b"", {}, {"instanceIds": []}, {"instanceIds": ["i-1", "i-2"]}, {"instanceIds": [5]}]
)
def test_an_answer_that_names_no_instance_is_unknown(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(cloud.bcc, "create", lambda query, body: answer)

    with pytest.raises(TransientError, match="exactly one instance"):
        launch(cloud.provider(), make_spec(cloud))


def test_another_clusters_spec_is_refused(cloud: BaiduCloud) -> None:
    with pytest.raises(InvalidRequestError):
        launch(cloud.provider(), make_spec(cloud, cluster_id="other"))

    assert cloud.emulator.requests == []

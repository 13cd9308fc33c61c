"""Baidu AI Cloud: the port's contract, and what is its own. The real SDK, an emulated account."""

from __future__ import annotations

import base64
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
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
    ThrottledError,
    TransientError,
)
from hybrid.core.models import CloudState, Market
from providers.baidu.credentials import VARIABLES
from tests.emulators.baidu import ACCESS_KEY, SECRET_KEY, BaiduEmulator, Fault, start
from tests.emulators.baidu.cloud import Instance
from tests.emulators.baidu.signature import Secret
from tests.providers.baidu_cloud import CREATE, EXPIRY, RELEASE, SPEC, BaiduCloud, bcc_id
from tests.providers.contract import ProviderContract, end, launch, listed, live, make_spec


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    for name, value in zip(VARIABLES, (ACCESS_KEY, SECRET_KEY, ""), strict=True):
        monkeypatch.setenv(name, value)
    emulator = start()
    yield BaiduCloud(emulator)
    emulator.stop()


class TestContract(ProviderContract):
    """Every promise of the port."""

    def test_an_instance_without_an_expiry_is_shown_so_and_extend_gives_it_one(
        self, cloud: BaiduCloud
    ) -> None:
        """A crash between the two calls of a launch; nobody calls `launch` again."""
        provider, spec = cloud.provider(), make_spec(cloud)
        cloud.emulator.faults.append(Fault("drop", call=EXPIRY))
        with pytest.raises(TransientError):
            launch(provider, spec)
        (provider_id,) = live(provider)
        assert listed(provider)[provider_id].expires_at_s is None
        until_s = time.time() + 1800

        cloud.provider().extend([provider_id], until_s=until_s)

        assert listed(provider)[provider_id].expires_at_s == pytest.approx(until_s, abs=1.0)


# --- launching ------------------------------------------------------------------------------


def create_call(cloud: BaiduCloud) -> Any:
    (call,) = cloud.emulator.calls(CREATE)
    return call


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

    body = create_call(cloud).body
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

    body = create_call(cloud).body
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

    text = base64.b64decode(create_call(cloud).body["userData"]).decode()
    assert text.startswith("#!/bin/sh\n")
    assert "hybrid.node start" in text
    assert SECRET_KEY not in text


def test_another_clusters_spec_is_refused(cloud: BaiduCloud) -> None:
    with pytest.raises(InvalidRequestError):
        launch(cloud.provider(), make_spec(cloud, cluster_id="other"))

    assert cloud.emulator.requests == []


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("capacity", CapacityError),
        ("quota", QuotaError),
        ("throttled", ThrottledError),
        ("auth", AuthError),
        ("invalid", InvalidRequestError),
        ("transient", TransientError),
        ("conflict", ConflictError),
    ],
)
def test_a_refusal_says_what_to_do_and_the_same_launch_works_afterwards(
    cloud: BaiduCloud, kind: str, error: type[ProviderError]
) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    cloud.emulator.refuse(kind)
    with pytest.raises(error) as caught:
        launch(provider, spec)

    provider_id = launch(provider, spec)

    assert type(caught.value) is error
    assert caught.value.code
    assert "injected" in str(caught.value)  # Baidu's own words
    assert "request " in str(caught.value)  # what its support asks for
    assert live(provider) == [provider_id]


def test_the_same_token_with_other_parameters_is_a_conflict(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    launch(provider, make_spec(cloud), token="same")

    with pytest.raises(ConflictError):
        launch(provider, make_spec(cloud), token="same")

    assert len(live(provider)) == 1


def test_a_quota_of_zero_is_a_quota_error(cloud: BaiduCloud) -> None:
    cloud.bcc.quota = 0

    with pytest.raises(QuotaError):
        launch(cloud.provider(), make_spec(cloud))


def test_an_account_without_money_is_a_quota_error(cloud: BaiduCloud) -> None:
    cloud.bcc.balance_cny = 99

    with pytest.raises(QuotaError, match="100 CNY"):
        launch(cloud.provider(), make_spec(cloud))


@pytest.mark.parametrize(
    "change",
    [{"image": "m-none"}, {"instance_type": "bcc.none.c12m40.1p40"}, {"subnet": "sbn-none"}],
    ids=["image", "type", "subnet"],
)
def test_what_baidu_does_not_know_is_refused_for_good(
    cloud: BaiduCloud, change: dict[str, Any]
) -> None:
    """Also when Baidu says 404: at a launch that is not about the instance."""
    cloud.account["security_groups"] = ["g-1"] if "subnet" in change else []
    cloud.pools[0] |= change

    with pytest.raises(InvalidRequestError):
        launch(cloud.provider(), make_spec(cloud))


def test_a_code_that_nobody_knows_is_kept_and_is_no_capacity(cloud: BaiduCloud) -> None:
    cloud.emulator.faults.append(Fault("refuse", status=403, code="Instance.NoMoreOfThese"))

    with pytest.raises(ProviderError) as caught:
        launch(cloud.provider(), make_spec(cloud))

    assert type(caught.value) is ProviderError
    assert caught.value.code == "Instance.NoMoreOfThese"


def test_the_configuration_explains_a_code(cloud: BaiduCloud) -> None:
    cloud.account["errors"] = {"nomoreofthese": "capacity"}
    cloud.emulator.faults.append(Fault("refuse", status=403, code="Instance.NoMoreOfThese"))

    with pytest.raises(CapacityError) as caught:
        launch(cloud.provider(), make_spec(cloud))

    assert caught.value.code == "Instance.NoMoreOfThese"


@pytest.mark.parametrize(
    "fault",
    [
        Fault("html", status=502),
        Fault("html", status=403),
        Fault("html", status=404),
        Fault("empty", status=503),
        Fault("empty", status=404),
        Fault("garbage"),
        Fault("drop"),
    ],
    ids=lambda fault: f"{fault.what}-{fault.status}",
)
def test_an_answer_that_is_not_baidus_proves_nothing(cloud: BaiduCloud, fault: Fault) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    for call in (provider.list_instances, lambda: provider.terminate([provider_id])):
        cloud.emulator.faults.append(Fault(**vars(fault)))
        with pytest.raises(TransientError):
            call()
    cloud.emulator.faults.append(Fault(**vars(fault)))
    with pytest.raises(TransientError):
        launch(provider, make_spec(cloud))


@pytest.mark.parametrize("answer", [b"", b"{}", b'{"instances": null}'])
def test_a_list_that_is_not_there_is_not_an_empty_list(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(cloud.bcc, "list", lambda query: answer)

    with pytest.raises(TransientError):
        cloud.provider().list_instances()


def test_a_slow_answer_ends_at_the_timeout(cloud: BaiduCloud) -> None:
    cloud.account["timeout"] = "100ms"
    cloud.emulator.faults.append(Fault("slow", delay_s=0.5))

    with pytest.raises(TransientError, match="the network"):
        cloud.provider().list_instances()


def test_nobody_at_the_endpoint_is_trouble_that_may_pass(cloud: BaiduCloud) -> None:
    cloud.account["endpoints"] = {"bj": "http://127.0.0.1:9"}

    with pytest.raises(TransientError, match="the network"):
        cloud.provider().list_instances()


def test_the_adapter_never_tries_twice(cloud: BaiduCloud) -> None:
    cloud.emulator.faults.append(Fault("refuse", status=503, code="ServiceUnavailable", times=9))

    with pytest.raises(TransientError):
        cloud.provider().list_instances()

    assert len(cloud.emulator.requests) == 1


# --- keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access_key", "secret_key", "code"),
    [
        (ACCESS_KEY, "wrong", "SignatureDoesNotMatch"),
        ("ALTAKunknown", SECRET_KEY, "InvalidAccessKeyId"),
    ],
)
def test_wrong_keys_are_an_auth_error(
    cloud: BaiduCloud,
    monkeypatch: pytest.MonkeyPatch,
    access_key: str,
    secret_key: str,
    code: str,
) -> None:
    monkeypatch.setenv(VARIABLES[0], access_key)
    monkeypatch.setenv(VARIABLES[1], secret_key)

    with pytest.raises(AuthError) as caught:
        cloud.provider().list_instances()

    assert caught.value.code == code
    assert secret_key not in str(caught.value)


def test_missing_keys_are_an_auth_error_that_says_where_to_put_them(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLES[1])
    provider = cloud.provider()  # a file can be checked without keys

    with pytest.raises(AuthError, match=VARIABLES[1]):
        launch(provider, make_spec(cloud))

    assert provider.offers()
    assert cloud.emulator.requests == []


@pytest.mark.parametrize("ahead_s", [3600, -3600])
def test_a_clock_that_is_wrong_is_an_auth_error_that_says_so(
    cloud: BaiduCloud, ahead_s: float
) -> None:
    cloud.emulator.clock_ahead_s = ahead_s

    with pytest.raises(AuthError, match="clock"):
        cloud.provider().list_instances()


def test_temporary_keys_work_until_they_end_and_can_be_renewed(
    cloud: BaiduCloud, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    cloud.account["credentials_file"] = str(file)
    emulator, provider = cloud.emulator, cloud.provider()
    emulator.secrets = {"temp1": Secret("s1", "token/1+=", until_s=time.time() + 60)}
    write_keys(
        file, '{"accessKeyId": "temp1", "secretAccessKey": "s1", "sessionToken": "token/1+="}'
    )
    launch(provider, make_spec(cloud))

    emulator.secrets["temp1"] = Secret("s1", "token/1+=", until_s=time.time() - 1)
    with pytest.raises(AuthError):
        provider.list_instances()
    emulator.secrets["temp2"] = Secret("s2", "token2")
    write_keys(file, '{"accessKeyId": "temp2", "secretAccessKey": "s2", "sessionToken": "token2"}')

    assert len(live(provider)) == 1


def write_keys(file: Path, content: str) -> None:
    file.touch(mode=0o600)
    file.write_text(content)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ('{"accessKeyId": "a", "secretAccessKey": "s"}', 0o644, "chmod 600"),
        ('{"accessKeyId": "a", "secretAccessKey": ""}', 0o600, "holds no keys"),
        ('{"accessKeyId": "a", "secretAccessKey": 5}', 0o600, "holds no keys"),
        ('["a"]', 0o600, "holds no keys"),
        ("s3cret", 0o600, "holds no keys"),
        ('{"accessKeyId": "a b", "secretAccessKey": "s3cret"}', 0o600, "odd characters"),
    ],
)
def test_a_bad_file_of_keys_is_an_auth_error(
    cloud: BaiduCloud, tmp_path: Path, content: str, mode: int, words: str
) -> None:
    file = tmp_path / "keys.json"
    write_keys(file, content)
    file.chmod(mode)
    cloud.account["credentials_file"] = str(file)

    with pytest.raises(AuthError, match=words) as caught:
        cloud.provider().list_instances()

    assert "s3cret" not in str(caught.value)


def test_a_missing_file_of_keys_is_an_auth_error(cloud: BaiduCloud, tmp_path: Path) -> None:
    cloud.account["credentials_file"] = str(tmp_path / "none.json")

    with pytest.raises(AuthError, match=r"none\.json"):
        cloud.provider().list_instances()


def test_no_key_token_or_signature_reaches_a_log(
    cloud: BaiduCloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sdk = logging.getLogger("baidubce")
    sdk.setLevel(logging.DEBUG)

    launch(cloud.provider(), make_spec(cloud))
    cloud.emulator.refuse("auth", call="GET /v2/instance")
    with pytest.raises(AuthError) as caught:
        cloud.provider().list_instances()

    assert sdk.level >= logging.INFO
    signed = create_call(cloud).headers["authorization"]
    for text in (caplog.text, str(caught.value)):
        for secret in (SECRET_KEY, signed, "join-once", create_call(cloud).body["userData"]):
            assert secret not in text


# --- what there is --------------------------------------------------------------------------


def test_a_list_of_many_pages_is_read_to_its_end(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    cloud.bcc.page_size = 2
    ids = {launch(provider, make_spec(cloud)) for _ in range(5)}
    cloud.emulator.requests.clear()

    assert set(listed(provider)) == ids
    assert len(cloud.emulator.requests) == 3


def test_a_page_that_leads_nowhere_is_unknown_and_not_the_end(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud.bcc, "list", lambda query: {"instances": [], "isTruncated": True})

    with pytest.raises(TransientError, match="more follow"):
        cloud.provider().list_instances()


def put_instance(cloud: BaiduCloud, tags: dict[str, str]) -> str:
    """Put a machine of somebody's into the account."""
    name = f"i-{len(cloud.bcc.instances)}foreign"
    body = {
        "spec": SPEC,
        "imageId": "m-gpu1",
        "billing": {"paymentTiming": "Postpaid"},
        "tags": [{"tagKey": key, "tagValue": value} for key, value in tags.items()],
    }
    cloud.bcc.instances[name] = Instance(name, body, time.time())
    return f"bj/{name}"


def test_machines_with_similar_tags_are_never_touched(cloud: BaiduCloud) -> None:
    cloud.bcc.is_filter_loose = True
    ours = cloud.cluster_id
    foreign = [
        put_instance(cloud, tags)
        for tags in (
            {"hybrid-cluster": f"{ours}2", "hybrid-instance": "i-1"},
            {"hybrid-cluster": ours.upper(), "hybrid-instance": "i-1"},
            {"hybrid-clusters": ours, "hybrid-instance": "i-1"},
            {"hybrid-cluster": ours},  # somebody copied a tag
            {},
        )
    ]
    provider = cloud.provider()
    mine = launch(provider, make_spec(cloud))

    assert list(listed(provider)) == [mine]
    for act in (provider.terminate, lambda ids: provider.extend(ids, until_s=time.time() + 60)):
        with pytest.raises(NotFoundError):
            act(foreign)
        act([mine, *foreign])
    changed = [call.path for call in cloud.emulator.calls("(PUT|POST) /v2/instance/.*")]
    assert {path.rpartition("/")[2] for path in changed} == {bcc_id(mine)}


def test_an_instance_deleted_by_hand_is_not_found(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.delete_by_hand(bcc_id(provider_id))

    assert listed(provider) == {}
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])


def test_an_instance_in_the_recycle_bin_is_gone(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.recycle_by_hand(bcc_id(provider_id))

    assert listed(provider)[provider_id].state is CloudState.GONE
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])


def test_we_never_use_the_recycle_bin(cloud: BaiduCloud) -> None:
    """Not even for an instance without an expiry, which could go there."""
    provider, spec = cloud.provider(), make_spec(cloud)
    cloud.emulator.faults.append(Fault("drop", call=EXPIRY))
    with pytest.raises(TransientError):
        launch(provider, spec)

    end(provider, *live(provider))

    (call,) = cloud.emulator.calls("POST /v2/instance/.*")
    assert call.body["bccRecycleFlag"] is False
    assert call.body["relatedReleaseFlag"] is True


@pytest.mark.parametrize("status", ["Stopped", "Error", "Expired"])
def test_an_instance_that_does_not_run_has_a_problem_and_can_be_ended(
    cloud: BaiduCloud, status: str
) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.instances[bcc_id(provider_id)].status = status

    item = listed(provider)[provider_id]
    end(provider, provider_id)

    assert item.state is CloudState.STOPPING
    assert item.problem
    assert live(provider) == []


@pytest.mark.parametrize("status", ["Scaling", "ImageProcessing", "SomethingNew"])
def test_a_status_of_any_other_name_is_a_machine_that_costs(cloud: BaiduCloud, status: str) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.instances[bcc_id(provider_id)].status = status

    assert listed(provider)[provider_id].state is CloudState.RUNNING


def test_an_instance_that_is_being_created_is_ended_later(cloud: BaiduCloud) -> None:
    cloud.bcc.boot_s = 60
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    with pytest.raises(TransientError) as caught:
        provider.terminate([provider_id])
    assert caught.value.code == "Instance.ReleaseWhileCreating"

    cloud.bcc.ahead_s = 61
    end(provider, provider_id)

    assert live(provider) == []


def test_one_refusal_keeps_no_other_instance_alive(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    ids = sorted(launch(provider, make_spec(cloud)) for _ in range(3))
    cloud.bcc.instances[bcc_id(ids[0])].is_protected = True

    with pytest.raises(TransientError):
        provider.terminate(ids)

    states = [listed(provider)[i].state for i in ids]
    assert states == [CloudState.RUNNING, CloudState.STOPPING, CloudState.STOPPING]


def test_what_the_list_hides_is_asked_for_by_name(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    ids = [launch(provider, make_spec(cloud)) for _ in range(3)]
    cloud.bcc.instances[bcc_id(ids[1])].hidden_lists = 1

    provider.extend(ids, until_s=time.time() + 7200)

    expiries = [item.expires_at_s for item in listed(provider).values()]
    assert len(expiries) == 3
    assert all(expiry and expiry > time.time() + 7000 for expiry in expiries)


def test_a_hundred_leases_are_renewed_with_one_question(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    cloud.bcc.quota = 200
    ids = [launch(provider, make_spec(cloud)) for _ in range(101)]
    cloud.emulator.requests.clear()

    provider.extend(ids, until_s=time.time() + 7200)

    assert len(cloud.emulator.calls("GET .*")) == 2  # 100 ids fit into one
    assert len(cloud.emulator.calls("PUT .*")) == 101


def test_an_instance_is_found_in_its_region_after_its_pool_left_the_file(
    cloud: BaiduCloud,
) -> None:
    provider_id = launch(cloud.provider(), make_spec(cloud))
    cloud.pools[0]["infra"] = "baidu/gz/cn-gz-a"
    elsewhere = cloud.provider()

    elsewhere.extend([provider_id], until_s=time.time() + 60)
    elsewhere.terminate([provider_id])

    cloud.bcc.ahead_s = 1
    assert cloud.bcc.living() == []


def test_regions_are_listed_once_each_and_one_that_fails_fails_the_list(
    cloud: BaiduCloud,
) -> None:
    other = BaiduEmulator()
    cloud.account["endpoints"] = {"bj": cloud.emulator.url, "gz": other.url}
    cloud.pools += [
        cloud.pools[0] | {"infra": "baidu/bj/cn-bj-a"},
        cloud.pools[0] | {"infra": "baidu/gz/cn-gz-a"},
    ]
    provider = cloud.provider()
    try:
        launch(provider, make_spec(cloud))
        cloud.emulator.requests.clear()

        assert len(provider.list_instances()) == 1
        assert (len(cloud.emulator.requests), len(other.requests)) == (1, 1)
        other.faults.append(Fault("html"))
        with pytest.raises(TransientError):
            provider.list_instances()
    finally:
        other.stop()


def test_an_instance_without_a_date_is_young(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An age that is not known must not read as a great age: orphans end by it."""
    provider = cloud.provider()
    launch(provider, make_spec(cloud))
    true_list = cloud.bcc.list

    def without_date(query: Any) -> Any:
        answer = true_list(query)
        for item in answer["instances"]:
            item["createTime"] = "soon"
        return answer

    monkeypatch.setattr(cloud.bcc, "list", without_date)

    (item,) = provider.list_instances()
    assert item.launched_at_s == pytest.approx(time.time(), abs=60)


# --- the SDK --------------------------------------------------------------------------------


def test_the_sdk_is_loaded_at_the_first_call_only() -> None:
    code = (
        "import sys; from providers.baidu import make; from hybrid.core.ports import *;"
        "from hybrid.adapters.clock import SystemClock;"
        "context = ProviderContext('c', 'lab', '', '', SystemClock());"
        "pool = dict(infra='baidu/bj', instance_type='bcc.g5.c2m8', usd_per_hour=1);"
        "print(len(make('baidu', dict(image='m-1', pools=[pool]), context).offers()));"
        "print([name for name in sys.modules if name.startswith('baidubce')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )

    assert done.stdout.split("\n")[:2] == ["1", "[]"], done.stderr


def test_a_missing_sdk_is_told_with_its_cure(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "baidubce.services.bcc.bcc_client", None)

    with pytest.raises(ProviderError, match=r"pip install 'hybrid-burst\[baidu\]'"):
        cloud.provider().list_instances()

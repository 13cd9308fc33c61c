"""What Baidu AI Cloud refuses, and answers that are not Baidu's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    InvalidRequestError,
    ProviderError,
    QuotaError,
    ThrottledError,
    TransientError,
)
from tests.emulators.baidu import Fault
from tests.providers.baidu_cloud import (
    BaiduCloud,
    baidu_cloud,
)
from tests.providers.contract import launch, live, make_spec


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    with baidu_cloud(monkeypatch) as made:
        yield made


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

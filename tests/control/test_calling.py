"""The retry engine and the call limits above the adapters (reliability.md 16 and 17)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import cast

import pytest

from hybrid.control.calling import CalledProvider, CallLimits
from hybrid.core.bucket import Rate
from hybrid.core.errors import (
    AuthError,
    CapacityError,
    FencedError,
    PendingError,
    ProviderError,
    QuotaError,
    ThrottledError,
    TransientError,
)
from hybrid.core.models import LaunchSpec
from hybrid.core.ports import Provider
from tests.world.clock import VirtualClock
from tests.world.cloud import SimCloud
from tests.world.world import make_offer

OFFER = make_offer()
WIDE = Rate(per_s=1_000.0, burst=1_000)


def make_called(
    cloud: SimCloud, clock: VirtualClock, rates: Mapping[str, Rate] | None = None
) -> CalledProvider:
    names = ("launch", "list", "offers", "extend", "terminate")
    limits = CallLimits(rates=dict.fromkeys(names, WIDE) | dict(rates or {}))
    return CalledProvider(cloud, clock, random.Random(1), limits)


def make_spec() -> LaunchSpec:
    return LaunchSpec(
        cluster_id="c",
        instance_id="i-1",
        epoch=1,
        head_address="127.0.0.1:1",
        controller_url="http://127.0.0.1:2",
        labels={},
        expires_at_s=2e9,
        ray_version="2",
        python_version="3",
        tags={"hybrid-cluster": "c", "hybrid-instance": "i-1", "hybrid-epoch": "1"},
    )


def launch(provider: CalledProvider) -> str:
    return provider.launch(OFFER, make_spec(), token="t", join_token="j")


def test_a_lost_answer_is_repeated_with_the_same_token_and_rents_once() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER], launch_faults=["lost"])

    launch(make_called(cloud, clock))

    assert cloud.calls.count("launch") == 2
    assert len(cloud.machines) == 1


def test_what_the_cloud_is_still_at_work_on_is_left_to_the_next_tick() -> None:
    clock = VirtualClock()
    faults: list[ProviderError | str] = [PendingError("at work", provider="sim")]
    cloud = SimCloud(clock, [OFFER], launch_faults=faults)

    with pytest.raises(PendingError):
        launch(make_called(cloud, clock))

    assert cloud.calls.count("launch") == 1


@pytest.mark.parametrize("kind", [ThrottledError, TransientError])
def test_passing_trouble_is_tried_three_times_at_most(kind: type[ProviderError]) -> None:
    clock = VirtualClock()
    faults: list[ProviderError | str] = [kind("x", provider="sim") for _ in range(9)]
    cloud = SimCloud(clock, [OFFER], launch_faults=faults)
    started_s = clock.monotonic_s()

    with pytest.raises(kind):
        launch(make_called(cloud, clock))

    assert cloud.calls.count("launch") == 3
    assert 0 < clock.monotonic_s() - started_s <= 2 * 2.0


@pytest.mark.parametrize("kind", [CapacityError, QuotaError, AuthError, ProviderError])
def test_what_does_not_pass_is_not_repeated(kind: type[ProviderError]) -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER], launch_faults=[kind("x", provider="sim")])

    with pytest.raises(kind):
        launch(make_called(cloud, clock))

    assert cloud.calls.count("launch") == 1


def test_a_storm_of_calls_stays_under_the_rate() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER])
    provider = make_called(cloud, clock, {"list": Rate(per_s=2.0, burst=5)})
    started_s = clock.monotonic_s()

    for _ in range(500):
        provider.list_instances()

    passed_s = clock.monotonic_s() - started_s
    assert cloud.calls.count("list") == 500
    assert passed_s >= (500 - 5) / 2.0


def test_a_limit_that_would_hold_the_tick_is_reported_and_not_repeated() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER])
    provider = make_called(cloud, clock, {"list": Rate(per_s=0.01, burst=1)})
    provider.list_instances()

    with pytest.raises(ThrottledError, match="our own limit"):
        provider.list_instances()

    assert cloud.calls.count("list") == 1


def test_terminate_has_a_bucket_of_its_own() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER])
    provider = make_called(cloud, clock, {"launch": Rate(per_s=0.01, burst=1)})
    provider_id = launch(provider)
    with pytest.raises(ThrottledError):
        launch(provider)

    provider.terminate([provider_id])

    assert cloud.alive() == []


def test_it_says_what_the_inner_one_is() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER], name="sim", list_lag_s=7.0)
    provider = make_called(cloud, clock)

    assert (provider.name, provider.list_lag_s) == ("sim", 7.0)
    assert provider.offers()[0].offer_id == OFFER.offer_id


@pytest.mark.parametrize(
    "refusal", [CapacityError, QuotaError, AuthError, ThrottledError], ids=lambda e: e.__name__
)
def test_a_refusal_after_a_lost_answer_stays_unknown(refusal: type[ProviderError]) -> None:
    """Item 4: "nothing was rented" is true of the last call only; the first one rented it."""
    clock = VirtualClock()
    faults: list[ProviderError | str] = ["lost", *[refusal("no", provider="sim")] * 3]
    cloud = SimCloud(clock, [OFFER], launch_faults=faults)

    with pytest.raises(TransientError, match=r"no; an earlier call got no answer"):
        launch(make_called(cloud, clock))

    assert len(cloud.machines) == 1


def test_the_epoch_is_checked_again_before_each_repeat() -> None:
    """Item 1: the pause between two tries is long enough for another controller to take over."""
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER], launch_faults=["lost", "lost"])
    checks: list[float] = []

    def check() -> None:
        checks.append(clock.monotonic_s())
        if len(checks) == 2:
            raise FencedError("another controller took over")

    provider = CalledProvider(cloud, clock, random.Random(1), check=check)

    with pytest.raises(FencedError):
        launch(provider)

    assert cloud.calls.count("launch") == 1
    assert provider.list_instances()
    assert len(checks) == 2, "looking changes nothing"


def test_an_adapter_that_can_tidy_is_asked_to_and_asked_again() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [OFFER], failing={"tidy"})

    with pytest.raises(TransientError):
        make_called(cloud, clock).tidy()

    assert cloud.calls == ["tidy"] * 3


def test_an_adapter_that_cannot_tidy_is_left_alone() -> None:
    clock = VirtualClock()

    class Plain:
        name = "plain"

    CalledProvider(cast("Provider", Plain()), clock, random.Random(1)).tidy()

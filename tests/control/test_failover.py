"""Failover in one tick across offers, zones, regions and clouds (reliability.md 16)."""

from __future__ import annotations

from pathlib import Path

from hybrid.core.errors import AuthError, CapacityError, ProviderError, QuotaError, Scope
from hybrid.core.models import Offer
from tests.world.world import World, make_offer

GPU = {"GPU": 1.0}


def offer(name: str, usd_per_hour: float, region: str = "", zone: str = "") -> Offer:
    parts = filter(None, (name, region, zone, "a4"))
    return make_offer(
        offer_id="/".join(parts),
        provider=name,
        usd_per_hour=usd_per_hour,
        region=region,
        zone=zone,
    )


def make_world(folder: Path, *offers: Offer) -> World:
    world = World(folder, offers=list(offers))
    world.ray.submit(12, GPU, 500.0)
    return world


def until_first_call(world: World) -> None:
    """Step until the controller has asked some cloud for a machine."""

    def is_asked() -> bool:
        return any("launch" in cloud.calls for cloud in world.clouds.values())

    world.run(60, until=is_asked)


def test_one_tick_crosses_three_clouds(fast_path: Path) -> None:
    world = make_world(fast_path, offer("aws", 1.0), offer("gcp", 2.0), offer("baidu", 2.5))
    world.clouds["aws"].launch_faults = [CapacityError("none", provider="aws", code="ICE")]
    world.clouds["gcp"].launch_faults = [QuotaError("none", provider="gcp", code="QUOTA")]

    until_first_call(world)

    assert [len(cloud.machines) for cloud in world.clouds.values()] == [0, 0, 1]
    assert [c.calls.count("launch") for c in world.clouds.values()] == [1, 1, 1]


def test_each_refusal_is_shown_with_its_reach(fast_path: Path) -> None:
    world = make_world(fast_path, offer("aws", 1.0, "eu", "a"), offer("gcp", 2.0))
    world.clouds["aws"].launch_faults = [QuotaError("limit is 0", provider="aws", code="Max")]

    until_first_call(world)

    [failure] = world.loop.book.failures()
    assert failure.key == "region:aws/eu"
    assert failure.error == "QuotaError"
    assert "limit is 0" in failure.message


def test_what_only_a_person_can_mend_is_an_alarm_until_it_works(fast_path: Path) -> None:
    world = make_world(fast_path, offer("aws", 1.0, "eu"), offer("gcp", 2.0), offer("b", 1.5))
    world.clouds["aws"].launch_faults = [AuthError("the key was revoked", provider="aws")]
    world.clouds["b"].launch_faults = [CapacityError("none", provider="b")]

    until_first_call(world)
    world.step()

    world.desk.publish()
    [alarm] = [a for a in world.desk.status().alarms if a.code == "offer_refused"]
    assert alarm.subject == "account:aws"
    assert "the key was revoked" in alarm.what
    world.run(1_900, until=world.is_quiet)
    world.run(1_000)
    world.ray.submit(12, GPU, 900.0)
    world.run(100, until=lambda: bool(world.clouds["aws"].machines))
    world.run(60)
    world.desk.publish()
    assert world.desk.status().alarms == ()


def test_a_quota_rests_its_region_and_no_other(fast_path: Path) -> None:
    world = make_world(
        fast_path,
        offer("aws", 1.0, "eu", "a"),
        offer("aws", 1.1, "eu", "b"),
        offer("aws", 1.2, "us", "a"),
    )
    world.clouds["aws"].launch_faults = [QuotaError("limit", provider="aws")]

    until_first_call(world)

    assert world.clouds["aws"].calls.count("launch") == 2
    assert [m.offer.region for m in world.machines()] == ["us"]


def test_wrong_credentials_cost_one_call_not_one_for_each_offer(fast_path: Path) -> None:
    offers = [offer("aws", 1.0 + n / 10, "eu", f"z{n}") for n in range(6)]
    world = make_world(fast_path, *offers)
    faults: list[ProviderError | str] = [AuthError("expired", provider="aws") for _ in range(6)]
    world.clouds["aws"].launch_faults = faults

    world.run(40)

    assert world.clouds["aws"].calls.count("launch") == 1


def test_a_scope_that_rested_is_tried_by_one_launch(fast_path: Path) -> None:
    world = make_world(fast_path, offer("aws", 1.0, "eu", "a"), offer("aws", 1.1, "eu", "b"))
    error = CapacityError("whole region", provider="aws", scope=Scope.REGION)
    world.clouds["aws"].launch_faults = [error]
    until_first_call(world)
    world.ray.submit(8, GPU, 900.0)

    world.run(400, until=lambda: bool(world.machines()))

    assert len(world.machines()) == 1, "one probe; the rest waits for how it ends"


def test_rounds_are_bounded_when_everything_refuses(fast_path: Path) -> None:
    offers = [offer(f"cloud{n}", 1.0 + n / 10) for n in range(12)]
    world = make_world(fast_path, *offers)
    for name, cloud in world.clouds.items():
        cloud.launch_faults = [CapacityError("none", provider=name) for _ in range(5)]

    until_first_call(world)

    calls = sum(cloud.calls.count("launch") for cloud in world.clouds.values())
    assert calls == world.params.failover_rounds
    world.run(3)
    assert sum(c.calls.count("launch") for c in world.clouds.values()) == len(offers)

"""What rests and what is no offer reach the views, in a running controller and after a restart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from hybrid.control.calling import CalledProvider
from hybrid.control.clouds import Clouds
from hybrid.core.errors import AuthError, QuotaError
from hybrid.core.models import Market, Offer, Reason
from hybrid.core.models.withheld import Offered, Withheld
from hybrid.core.rests import RestView
from tests.control.test_failover import make_world, offer, until_first_call
from tests.world.clock import VirtualClock
from tests.world.cloud import SimCloud

SPOT = Withheld(
    offer_id="aws/eu/a4/spot",
    provider="aws",
    instance_type="a4",
    market=Market.SPOT,
    reason=Reason(code="no_price", message="nobody knows its price"),
)


class CandidCloud(SimCloud):
    """A cloud that says which pool it leaves out."""

    def pool_offers(self) -> Sequence[Offered]:
        return [*self.offers(), SPOT]


def clouds_of(*offers: Offer) -> tuple[Clouds, CandidCloud]:
    clock = VirtualClock()
    cloud = CandidCloud(clock, list(offers), "aws")
    return Clouds([CalledProvider(cloud, clock, random.Random(1))], clock), cloud


def test_a_failure_is_in_the_plan_and_in_status_with_all_that_is_known(fast_path: Path) -> None:
    world = make_world(fast_path, offer("aws", 1.0, "eu", "a"), offer("aws", 1.1, "eu", "b"))
    world.clouds["aws"].launch_faults = [QuotaError("limit is 0", provider="aws", code="Max")]
    until_first_call(world)
    world.desk.publish()

    (rest,) = world.desk.plan().resting

    assert world.desk.status().plan.resting == (rest,)
    assert (rest.key, rest.scope, rest.error) == ("region:aws/eu", "region", "QuotaError")
    assert "limit is 0" in rest.message
    assert (rest.failure_count, rest.is_over) == (1, False)
    assert rest.until_at_s > world.clock.now_s()
    assert rest.offer_ids == ("aws/eu/a/a4", "aws/eu/b/a4")


def test_it_is_there_after_a_restart_and_says_when_its_time_has_come(fast_path: Path) -> None:
    world = make_world(fast_path, offer("aws", 1.0, "eu", "a"))
    world.clouds["aws"].launch_faults = [AuthError("expired", provider="aws")]
    until_first_call(world)
    before = _rest(world.desk.plan().resting)

    world.boot()
    world.run(5)

    after = _rest(world.desk.plan().resting)
    assert (after.key, after.until_at_s) == (before.key, before.until_at_s) != ("", 0.0)
    assert after.key == "account:aws"
    world.sleep(after.until_at_s - world.clock.now_s() + 1)
    world.desk.publish()
    assert _rest(world.desk.plan().resting).is_over


def _rest(resting: Sequence[RestView]) -> RestView:
    (rest,) = resting
    return rest


def test_what_a_cloud_leaves_out_is_kept_apart_from_its_offers() -> None:
    clouds, _ = clouds_of(offer("aws", 1.0))

    clouds.look()

    assert [found.offer_id for found in clouds.offers()] == ["aws/a4"]
    assert clouds.withheld() == (SPOT,)


def test_the_last_word_stays_in_force_while_the_cloud_does_not_answer() -> None:
    clouds, cloud = clouds_of(offer("aws", 1.0))
    clouds.look()
    clouds.forget_offers("aws")
    cloud.failing = {"offers"}

    clouds.look()

    assert clouds.withheld() == (SPOT,)
    assert "its offers could not be read" in clouds.sources["aws"].problem


def test_a_cloud_that_says_nothing_of_it_leaves_nothing_out() -> None:
    clock = VirtualClock()
    clouds = Clouds([SimCloud(clock, [offer("aws", 1.0)], "aws")], clock)

    clouds.look()

    assert clouds.withheld() == ()
    assert len(clouds.offers()) == 1

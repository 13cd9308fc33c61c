"""Tests of calm: whatever the load does, nodes are not launched and returned again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hybrid.core.models import (
    Caps,
    ClusterView,
    Commitment,
    Demand,
    Instance,
    InstanceState,
    Node,
    Offer,
)
from hybrid.core.policy.decide import decide
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Drain, Launch, Snapshot
from hybrid.core.waiting import Backlog, look
from tests.core.make import make_demand, make_instance, make_node, make_offer

HOUR_S = 3_600.0
TICK_S = 15.0
BOOT_S = 60.0
OFFER = make_offer(gpus=4)
S = InstanceState


@dataclass
class Loop:
    """The policy in the smallest world that closes the loop: work that comes and goes.

    A node works as long as there is load for it, home first; a drained idle node is gone.
    """

    params: PolicyParams
    offer: Offer = OFFER
    home_gpus: int = 4
    now_s: float = 0.0
    live: dict[str, Instance] = field(default_factory=dict)
    idle_since_s: dict[str, float] = field(default_factory=dict)
    backlog: Backlog = field(default_factory=Backlog)
    breach_since_s: float | None = None
    launched_at_s: list[float] = field(default_factory=list)
    ended_after_s: list[float] = field(default_factory=list)
    max_count: int = 0

    def run(self, hours: float, gpus_at: Callable[[float], int]) -> None:
        while self.now_s < hours * HOUR_S:
            self.tick(gpus_at(self.now_s))
            self.now_s += TICK_S

    def tick(self, gpus: int) -> None:
        for instance in self.live.values():
            if instance.state is S.BOOTING and self.now_s - instance.created_at_s >= BOOT_S:
                self.live[instance.instance_id] = instance.model_copy(
                    update={"state": S.RUNNING, "joined_at_s": self.now_s}
                )
        left = max(0, gpus - self.home_gpus)
        nodes = [make_node("home", self.home_gpus, free=self.home_gpus - min(gpus, self.home_gpus))]
        for instance in self.live.values():
            if instance.state is S.RUNNING:
                used = min(left, self.offer.gpu_count)
                left -= used
                nodes.append(self.node(instance, used))
        waiting: tuple[Demand, ...] = (make_demand(1, left),) if left else ()
        self.backlog, view = look(self.backlog, ClusterView(demands=waiting), now_s=self.now_s)
        self.act(nodes, view.demands)

    def node(self, instance: Instance, used: int) -> Node:
        name = instance.instance_id
        if used:
            self.idle_since_s.pop(name, None)
        since_s = self.idle_since_s.setdefault(name, self.now_s) if not used else self.now_s
        gpus = self.offer.gpu_count
        return make_node(
            name, gpus, free=gpus - used, instance_id=name, idle_s=self.now_s - since_s
        )

    def act(self, nodes: list[Node], demands: tuple[Demand, ...]) -> None:
        plan = decide(
            Snapshot(
                now_s=self.now_s,
                nodes=tuple(nodes),
                demands=demands,
                instances=tuple(self.live.values()),
                offers=(self.offer,),
                boot_s_by_offer={self.offer.offer_id: BOOT_S},
                caps=Caps(node_count=50),
                commitment=Commitment(node_count=len(self.live)),
                breach_since_s=self.breach_since_s,
            ),
            self.params,
        )
        self.breach_since_s = plan.breach_since_s
        for action in plan.actions:
            if isinstance(action, Launch):
                name = f"i-{len(self.launched_at_s):05d}"
                self.launched_at_s.append(self.now_s)
                self.live[name] = make_instance(
                    name, S.BOOTING, offer=self.offer, now_s=self.now_s, age_s=0.0
                )
            elif isinstance(action, Drain) and not action.is_busy:
                gone = self.live.pop(action.instance_id)
                self.ended_after_s.append(self.now_s - gone.created_at_s)
        self.max_count = max(self.max_count, len(self.live))

    def launches_in_any_hour(self) -> int:
        times = self.launched_at_s
        return max((sum(t <= u < t + HOUR_S for u in times) for t in times), default=0)


def square(period_s: float, *, high: int, low: int = 0) -> Callable[[float], int]:
    return lambda now_s: high if now_s % period_s < period_s / 2 else low


PERIODS_S = [30, 60, 120, 300, 600, 660, 900, 1_200, 1_260, 1_800, 2_400, 3_600, 7_200]


@pytest.mark.parametrize("period_s", PERIODS_S)
@pytest.mark.parametrize(
    "params",
    [
        pytest.param(PolicyParams(), id="defaults"),
        pytest.param(
            PolicyParams(max_wait_s=0, stabilisation_s=0, idle_after_s=0), id="as-nervous-as-can-be"
        ),
    ],
)
def test_a_square_wave_of_load_launches_a_bounded_number_an_hour(
    params: PolicyParams, period_s: float
) -> None:
    """Reliability 15. Each node lives its minimum life, so a place is rented 4 times an hour."""
    loop = Loop(params)

    loop.run(5, square(period_s, high=12))

    places = 2  # 8 GPUs beyond home
    per_place = HOUR_S / params.min_life_s + 1
    assert loop.max_count <= places
    assert loop.launches_in_any_hour() <= places * per_place
    assert all(life_s >= params.min_life_s for life_s in loop.ended_after_s)


@pytest.mark.parametrize("period_s", [30, 60, 120, 300, 600])
def test_a_wave_shorter_than_the_wait_rents_nothing(period_s: float) -> None:
    loop = Loop(PolicyParams())

    loop.run(5, square(period_s, high=12))

    assert loop.launched_at_s == []


@pytest.mark.parametrize("period_s", [60, 120, 600, 1_200])
def test_pauses_shorter_than_the_idle_time_return_nothing(period_s: float) -> None:
    loop = Loop(PolicyParams(max_wait_s=0, stabilisation_s=0))

    loop.run(5, square(period_s, high=12))

    assert len(loop.launched_at_s) == 2
    assert loop.ended_after_s == []


def test_steady_overload_is_rented_for_once() -> None:
    loop = Loop(PolicyParams())

    loop.run(5, lambda _: 40)

    assert len(loop.launched_at_s) == 9
    assert loop.ended_after_s == []


def test_everything_comes_home_when_the_load_is_over_for_good() -> None:
    loop = Loop(PolicyParams())

    loop.run(3, lambda now_s: 40 if now_s < HOUR_S else 2)

    assert len(loop.launched_at_s) == 9
    assert len(loop.ended_after_s) == 9
    assert loop.live == {}


def test_a_jump_of_load_is_served_at_the_speed_of_the_ramp() -> None:
    """Reliability 18: a wrong demand signal costs a few nodes before somebody can react."""
    loop = Loop(PolicyParams(launches_per_tick=3))

    loop.run(1, lambda _: 164)

    per_tick = {t: loop.launched_at_s.count(t) for t in loop.launched_at_s}
    assert max(per_tick.values()) == 3
    assert len(loop.launched_at_s) == 40
    assert len(per_tick) == 14

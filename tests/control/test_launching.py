"""Launches: one intent, one machine, under the caps, whatever the cloud answers.

Items 2, 3, 4, 5, 10, 13, 16 and 29 of the reliability contract.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from hybrid.control.renting import launch_token
from hybrid.core.errors import (
    AuthError,
    CapacityError,
    CapExceededError,
    InvalidRequestError,
    LedgerError,
    ProviderError,
    QuotaError,
    ThrottledError,
    TransientError,
)
from hybrid.core.models import Caps, InstanceState, Reason
from hybrid.core.policy.plan import Launch, Plan
from hybrid.core.ports import Mode
from tests.world.memory import MemoryStore
from tests.world.trace import Point
from tests.world.world import World, make_offer, make_params, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState


def overflow(world: World, count: int = 12, lasts_s: float = 500.0) -> None:
    """Send more work than the two hosts of four GPUs can hold."""
    world.ray.submit(count, GPU, lasts_s)


def test_an_intent_without_a_call_is_launched_once_after_a_crash(fast_path: Path) -> None:
    world = World(fast_path)
    overflow(world)
    world.cloud.failing = {"launch"}
    world.run(60, until=lambda: bool(world.rows()))

    world.cloud.failing = set()
    world.boot()
    world.run(5)

    assert len(world.machines()) == 1
    assert [row.state for row in world.rows()] == [S.BOOTING]


def test_the_token_follows_from_the_cluster_the_instance_and_the_attempt() -> None:
    token = launch_token("c-1", "i-1", 1)

    assert token == launch_token("c-1", "i-1", 1)
    assert len({token, *(launch_token(*parts) for parts in OTHERS)}) == 1 + len(OTHERS)


OTHERS = [("c-2", "i-1", 1), ("c-1", "i-2", 1), ("c-1", "i-1", 2), ("c-1/i", "1", 1)]


def test_parameters_are_frozen_with_the_token_when_the_configuration_changes(
    fast_path: Path,
) -> None:
    world = World(fast_path)
    overflow(world)
    world.cloud.launch_faults = ["lost"]
    world.run(60, until=lambda: bool(world.machines()))

    world.params = make_params().model_copy(update={"lease_s": 300.0})
    world.cloud.offer_list = [make_offer(usd_per_hour=1.5, shape={"GPU": 4.0, "CPU": 16.0})]
    world.boot()
    world.run(5)

    assert len(world.machines()) == 1, "SimCloud refuses a token with other parameters"
    assert world.row().state is S.BOOTING


def test_a_lost_answer_on_one_cloud_stays_reserved_and_the_fallback_holds_the_caps(
    fast_path: Path,
) -> None:
    """Item 4: time out after creating, fall back: total <= cap, the lost one found and ended."""
    world = World(fast_path, offers=list(two_clouds()))
    world.params = make_params().model_copy(update={"caps": Caps(node_count=2)})
    world.boot()
    sim, other = world.clouds["sim"], world.clouds["other"]
    sim.hide_lists, sim.list_lag_s = 10_000, 300.0
    sim.never_joins = True
    sim.launch_faults = ["lost", *[TransientError("no answer", provider="sim")] * 1000]
    overflow(world)

    world.run(400, until=lambda: bool(other.machines))

    lost = world.row()
    assert lost.state is S.LOST
    world.run(1)
    assert world.loop.commitment.node_count == 2, "the lost one still counts"
    world.run(60)
    assert len(world.alive()) == 2
    [hidden] = sim.machines.values()
    hidden.hidden_lists = 0
    world.run(30, until=lambda: not sim.is_alive(hidden))
    world.run(3)
    assert world.row().state is S.TERMINATED


@pytest.mark.parametrize(
    "refusal", [CapacityError, QuotaError, InvalidRequestError, AuthError], ids=lambda e: e.__name__
)
def test_a_refusal_after_a_lost_answer_proves_nothing(
    fast_path: Path, refusal: type[ProviderError]
) -> None:
    """Item 4: the first call may have rented a machine, whatever the second one says."""
    world = World(fast_path)
    world.params = make_params().model_copy(update={"caps": Caps(node_count=1)})
    world.boot()
    world.cloud.launch_faults = ["lost", refusal("no", provider="sim")]
    world.cloud.hide_lists, world.cloud.list_lag_s = 15, 20.0
    overflow(world)

    world.run(60, until=lambda: bool(world.machines()))
    world.run(5)

    assert world.row().state is S.LOST, "not FAILED: that would free its place under the cap"
    world.run(300, until=lambda: world.row().is_ended)
    assert world.row().state is S.TERMINATED
    assert "orphan_ended" not in world.kinds(), "it was ours, not an orphan"


def test_a_refusal_after_a_crash_proves_nothing_either(fast_path: Path) -> None:
    world = World(fast_path)
    world.cloud.launch_faults = ["lost", CapacityError("sold out", provider="sim")]
    world.cloud.hide_lists = 5
    overflow(world)
    world.run(60, until=lambda: bool(world.machines()))
    world.boot()

    world.run(2)

    assert world.row().state is S.LOST


def test_a_refusal_after_throttling_frees_the_place_at_once(fast_path: Path) -> None:
    world = World(fast_path)
    throttled = ThrottledError("slow down", provider="sim")
    world.cloud.launch_faults = [throttled, CapacityError("sold out", provider="sim")]
    overflow(world)

    world.run(60, until=lambda: world.cloud.calls.count("launch") == 2)

    assert world.row().state is S.FAILED
    assert not world.ledger.spends()


def test_a_throttled_launch_is_repeated_with_its_token(fast_path: Path) -> None:
    world = World(fast_path)
    world.cloud.launch_faults = [ThrottledError("slow down", provider="sim")] * 3
    overflow(world)

    world.run(60, until=lambda: bool(world.machines()))

    assert len(world.rows()) == 1
    assert world.cloud.calls.count("launch") == 4


def test_a_sold_out_offer_costs_one_call_and_the_next_offer_is_used(fast_path: Path) -> None:
    """Item 16: exhaust an offer: calls <= bound, next offer used."""
    world = World(fast_path, offers=list(two_clouds()))
    world.params = make_params().model_copy(update={"caps": Caps()})
    world.boot()
    sim = world.clouds["sim"]
    sim.launch_faults = [CapacityError("sold out", provider="sim")] * 1000
    overflow(world, count=40)

    world.run(100, until=lambda: len(world.clouds["other"].machines) == 8)

    assert sim.calls.count("launch") == 1, "eight wanted, one asked"
    [failure] = world.ledger.failures()
    assert failure.failure_count == 1
    assert failure.error == "CapacityError"


def test_an_offer_rests_longer_after_each_failure_and_a_success_clears_it(fast_path: Path) -> None:
    world = World(fast_path)
    world.params = make_params().model_copy(update={"backoff_base_s": 10.0, "backoff_cap_s": 60.0})
    world.boot()
    world.cloud.launch_faults = [CapacityError("sold out", provider="sim")] * 6
    overflow(world, lasts_s=5000.0)
    asked_at: list[float] = []

    for _ in range(400):
        before = world.cloud.calls.count("launch")
        world.step()
        if world.cloud.calls.count("launch") > before:
            asked_at.append(world.clock.monotonic_s())

    gaps = [b - a for a, b in pairwise(asked_at)]
    assert len(asked_at) == 7
    assert all(5.0 <= gap <= 62.0 for gap in gaps)
    assert gaps[-1] > gaps[0]
    assert world.ledger.failures() == ()


def test_nodes_that_never_join_are_ended_and_the_next_offer_gets_the_work(fast_path: Path) -> None:
    """Item 13: fallback within the deadline, back-off grows, nothing is launched twice before."""
    world = World(fast_path, offers=list(two_clouds()))
    sim, other = world.clouds["sim"], world.clouds["other"]
    sim.never_joins = True
    overflow(world, lasts_s=1000.0)
    world.run(60, until=lambda: bool(sim.machines))

    used_s = world.run(200, until=lambda: bool(other.machines))

    assert used_s <= world.params.deadlines.join_s + 2
    assert len(sim.machines) == 1
    world.run(60, until=lambda: world.rows()[1].state is S.RUNNING)
    assert world.row().state is S.TERMINATED
    assert world.ledger.failures()[0].failure_count == 1


def test_many_nodes_that_fail_together_are_one_failure_of_their_offer(fast_path: Path) -> None:
    world = World(fast_path)
    world.params = make_params().model_copy(update={"caps": Caps()})
    world.boot()
    world.cloud.never_joins = True
    overflow(world, count=40, lasts_s=3000.0)

    world.run(300, until=lambda: "offer_failed" in world.kinds())
    world.run(3)

    assert len(world.rows()) == 8
    assert world.ledger.failures()[0].failure_count == 1


def test_a_cloud_that_accepts_and_then_fails_makes_the_offer_rest(fast_path: Path) -> None:
    """Google Cloud: the create call works, and the machine ends by itself. Not for ever anew."""
    world = World(fast_path)
    world.cloud.launch_faults = ["fails_later"] * 1000
    overflow(world, lasts_s=3000.0)

    world.run(200)

    assert len(world.machines()) <= 2
    assert world.ledger.failures()[0].failure_count >= 1
    assert {row.state for row in world.rows()} == {S.TERMINATED}


def test_create_calls_that_never_answer_make_the_offer_rest(fast_path: Path) -> None:
    world = World(fast_path)
    world.cloud.failing = {"launch"}
    overflow(world, lasts_s=3000.0)

    world.run(200)

    assert world.ledger.failures()[0].failure_count >= 1
    assert len(world.rows()) <= 3


def test_a_blind_provider_gets_no_launch_and_no_repeated_launch(fast_path: Path) -> None:
    """What cannot be listed could not be reaped."""
    world = World(fast_path)
    world.cloud.launch_faults = [TransientError("no answer", provider="sim")]
    overflow(world)
    world.run(60, until=lambda: world.cloud.calls.count("launch") == 1)

    world.cloud.failing = {"list"}
    world.run(20)

    assert world.cloud.calls.count("launch") == 1


def test_a_price_list_that_fails_does_not_blind_the_provider(fast_path: Path) -> None:
    """The machines are seen, so they are brought home; the last offers stay in force."""
    world = World(fast_path)
    world.ray.submit(12, GPU, 60.0)
    world.run(100, until=lambda: bool(world.machines()))

    world.cloud.failing = {"offers"}
    world.run(300, until=world.is_quiet)

    assert world.loop.clouds.offers()


@pytest.mark.parametrize("is_after", [False, True], ids=["before-commit", "after-commit"])
def test_no_launch_happens_when_its_intent_cannot_be_written(
    fast_path: Path, is_after: bool
) -> None:
    """A full disk: an intent that is not durable is no intent."""
    world = World(fast_path)
    overflow(world)
    seen: list[str] = []

    def full_disk(point: Point) -> None:
        if point.call == "request" and point.is_after == is_after:
            seen.append(str(point))
            raise LedgerError("disk full")

    world.tracer.hook = full_disk
    for _ in range(40):
        try:
            world.step()
        except LedgerError:
            assert world.machines() == []

    assert seen
    if not is_after:
        assert world.rows() == []
        assert world.machines() == []
    world.tracer.hook = None
    world.run(20)
    assert len(world.machines()) == 1, "and no second one for a row that was written after all"


def test_a_full_disk_does_not_stop_leases_and_terminations(fast_path: Path) -> None:
    """What frees money and what keeps work alive comes before what costs money."""
    world = World(fast_path)
    world.ray.submit(12, GPU, 3000.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    before_s = world.cloud.machines["sim-m1"].lease_end_s
    world.ray.submit(8, GPU, 3000.0)

    def full_disk(point: Point) -> None:
        if point.call == "request" and not point.is_after:
            raise LedgerError("disk full")

    world.tracer.hook = full_disk
    failed = 0
    for _ in range(200):
        try:
            world.step()
        except LedgerError:
            failed += 1

    assert failed > 100
    assert world.cloud.machines["sim-m1"].lease_end_s > before_s


def test_a_cap_is_held_by_the_ledger_even_when_the_policy_is_wrong(fast_path: Path) -> None:
    """Item 10: reservations are taken in the transaction of the intent."""
    world = World(fast_path)
    overflow(world)
    world.run(60, until=lambda: bool(world.machines()))
    row = world.row()

    with pytest.raises(CapExceededError, match="node_count"):
        world.loop.book.add(
            row.model_copy(update={"instance_id": "i-extra", "state": S.REQUESTED}),
            caps=Caps(node_count=1),
            exit_s=0.0,
        )


def test_a_plan_over_the_caps_is_cut_by_the_ledger_and_written_down(fast_path: Path) -> None:
    world = World(fast_path)
    world.run(5)
    launch = Launch(offer=make_offer(), reason=Reason(code="queue_wait", message="a wrong plan"))

    world.loop.actor.carry_out(Plan(actions=(launch,) * 9))

    assert len(world.machines()) == 4
    assert world.kinds().count("launch_capped") == 1, "once, not for each and in each tick"


@pytest.mark.parametrize(
    "switch", ["is_out_paused", "is_dry_run", "is_closing"], ids=lambda s: s.removeprefix("is_")
)
def test_a_switch_thrown_in_the_middle_of_a_tick_stops_the_next_launch(
    fast_path: Path, switch: str
) -> None:
    """Item 29: flip mid-pass: no later mutation of that class."""
    for number in _launch_points(fast_path):
        world = World(fast_path, store=MemoryStore())
        world.tracer.is_recording = True
        world.tracer.at(number, partial(world.ledger.set_mode, Mode.model_validate({switch: True})))
        overflow(world, count=16)
        while world.tracer.count <= number + 1:
            world.step()
        for _ in range(5 if switch != "is_closing" else 0):
            world.step()

        assert world.tracer.later_calls(number, "launch") == []
        world.ledger.close()


def _launch_points(folder: Path) -> list[int]:
    """Return the points of the tick that launches."""
    world = World(folder, store=MemoryStore())
    overflow(world, count=16)
    while not world.machines():
        world.tracer.points.clear()
        world.tracer.is_recording = True
        world.step()
    world.ledger.close()
    return [p.number for p in world.tracer.points]


def test_nothing_is_rented_on_an_old_picture(fast_path: Path) -> None:
    """Item 32: a look at the clouds that hung for minutes is no ground to spend money on."""
    world = World(fast_path)
    overflow(world, lasts_s=1e6)
    look, hangs_s = world.cloud.list_instances, world.params.stall_s + 1

    def hang() -> object:
        world.clock.advance(hangs_s)
        return look()

    world.cloud.list_instances = hang  # type: ignore[assignment,method-assign]
    for _ in range(30):
        world.step()
    assert world.machines() == []

    hangs_s = 0.0
    world.run(30, until=lambda: bool(world.machines()))

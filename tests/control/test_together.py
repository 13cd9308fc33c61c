"""Many calls at once, and what one failure teaches the rest of a plan."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from hybrid.control.calling import CalledProvider, CallLimits
from hybrid.control.together import AtOnce, in_turn
from hybrid.core.errors import CapacityError, FencedError, ProviderError, TransientError
from hybrid.core.models import Caps, Reason
from hybrid.core.policy.plan import Launch, Plan
from tests.world.clock import VirtualClock
from tests.world.cloud import SimCloud
from tests.world.world import World, make_offer, make_params

REASON = Reason(code="queue_wait", message="a plan")


class Waves:
    """Makes calls in turn, and counts how many were meant to go out at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, calls: list[Callable[[], object]]) -> Iterator[tuple[int, object]]:
        self.sizes.append(len(calls))
        yield from in_turn(calls)


def make_world(folder: Path) -> World:
    caps = Caps(node_count=100, gpu_count=400)
    offers = [make_offer(offer_id=f"sim/{name}") for name in ("a", "b")]
    world = World(folder, params=make_params().model_copy(update={"caps": caps}), offers=offers)
    world.step()
    return world


def plan_of(world: World, *counts: tuple[str, int]) -> Plan:
    launches = [
        Launch(offer=make_offer(offer_id=f"sim/{name}"), reason=REASON)
        for name, count in counts
        for _ in range(count)
    ]
    return Plan(actions=tuple(launches))


def test_an_offer_is_asked_for_one_then_for_two_then_for_four(fast_path: Path) -> None:
    world, waves = make_world(fast_path), Waves()
    world.loop.clouds.together = waves  # type: ignore[assignment]

    world.loop.actor.carry_out(plan_of(world, ("a", 10), ("b", 2)))

    assert waves.sizes == [1 + 1, 2 + 1, 4, 3]
    assert len(world.machines()) == 12


@pytest.mark.parametrize("stock", [0, 1, 3, 5])
def test_what_is_sold_out_is_asked_little(fast_path: Path, stock: int) -> None:
    world = make_world(fast_path)
    world.cloud.stock = stock

    world.loop.actor.carry_out(plan_of(world, ("a", 64)))

    assert len(world.machines()) == stock
    refused = world.cloud.calls.count("launch") - stock
    assert 1 <= refused <= stock + 1, "at most as many as it gave, and one"


def test_no_intent_is_written_for_what_will_not_be_asked(fast_path: Path) -> None:
    world = make_world(fast_path)
    world.cloud.stock = 0

    world.loop.actor.carry_out(plan_of(world, ("a", 64)))

    assert len(world.rows()) == 1


def test_calls_go_out_at_once_and_each_answer_has_its_number() -> None:
    meeting = threading.Barrier(8)

    def call(number: int) -> int:
        meeting.wait(timeout=30)
        return 10 * number

    answers = dict(AtOnce(8)([partial(call, n) for n in range(8)]))

    assert answers == {n: 10 * n for n in range(8)}


def test_an_answer_is_there_before_the_slowest_one() -> None:
    is_first_told = threading.Event()
    answers = AtOnce(2)([lambda: is_first_told.wait(30), lambda: True])

    assert next(answers) == (1, True)
    is_first_told.set()
    assert next(answers) == (0, True)


def test_no_more_than_the_limit_are_under_way() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def call() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.01)
        with lock:
            now -= 1

    list(AtOnce(3)([call] * 12))

    assert most <= 3


def test_one_call_that_breaks_waits_for_the_others() -> None:
    done: list[int] = []

    def good() -> None:
        threading.Event().wait(0.05)
        done.append(1)

    def bad() -> None:
        raise FencedError("another controller took over")

    with pytest.raises(FencedError):
        list(AtOnce(4)([bad, good, good]))
    assert len(done) == 2


def test_an_adapters_own_mistake_is_that_clouds_trouble_only(fast_path: Path) -> None:
    """A bug in one adapter must not stop the loop: the others' leases and drains live in it."""
    world = World(fast_path, offers=[make_offer(), make_offer(offer_id="b/1", provider="b")])
    broken = world.clouds["b"]
    broken.failing = set()

    def list_instances() -> list[object]:
        raise KeyError("NextToken")

    broken.list_instances = list_instances  # type: ignore[assignment,method-assign]
    world.is_calling = True
    world.boot()
    world.ray.submit(12, {"GPU": 1.0}, 500.0)

    world.run(60, until=lambda: bool(world.machines()))

    assert [m.offer.provider for m in world.machines()] == ["sim"]
    [source] = world.loop.clouds.blind()
    assert source.name == "provider:b"
    assert "the adapter failed: KeyError: 'NextToken'" in source.problem


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("y"), OSError("z")])
def test_a_launch_that_breaks_inside_the_adapter_may_have_rented(error: Exception) -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [make_offer()])

    def terminate(_: object) -> None:
        raise error

    cloud.terminate = terminate  # type: ignore[assignment,method-assign]
    called = CalledProvider(cloud, clock, random.Random(1), CallLimits(try_count=1))

    with pytest.raises(TransientError, match=type(error).__name__):
        called.terminate(["x"])


def test_refusals_are_no_mistakes() -> None:
    clock = VirtualClock()
    cloud = SimCloud(clock, [make_offer()])
    cloud.failing = {"terminate"}
    called = CalledProvider(cloud, clock, random.Random(1), CallLimits(try_count=1))

    with pytest.raises(ProviderError) as caught:
        called.terminate(["x"])

    assert not isinstance(caught.value, CapacityError)
    assert caught.value.code != "KeyError"

"""The head and the hosts: started again when they are down, each for itself, never ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from hybrid.control.base import Base
from hybrid.core.errors import FencedError, FleetError
from hybrid.core.ports import HostState
from tests.world.base import SimFleet, SimHead
from tests.world.clock import VirtualClock
from tests.world.ray import SimRay
from tests.world.world import World


def allowed() -> None:
    """This controller is the only one."""


def make_base(count: int = 2) -> tuple[Base, SimHead, SimFleet, VirtualClock]:
    clock = VirtualClock()
    ray = SimRay(clock)
    shapes = {f"host-{n}": {"GPU": 4.0} for n in range(count)}
    head, fleet = SimHead(ray), SimFleet(ray, dict(shapes))
    base = Base(head, fleet, clock, shapes=dict(shapes), labels={name: {} for name in shapes})
    return base, head, fleet, clock


def test_everything_that_is_down_is_started_once() -> None:
    base, head, fleet, _ = make_base()

    found = base.ensure(check=allowed)

    assert [name for name, _ in found] == ["head", "host-0", "host-1"]
    assert base.ensure(check=allowed) == []
    assert (head.starts, fleet.joined) == (1, {"host-0", "host-1"})


def test_a_host_that_cannot_be_reached_does_not_stop_the_others() -> None:
    base, _, fleet, _ = make_base()
    fleet.unreachable = {"host-0"}

    base.ensure(check=allowed)

    assert fleet.joined == {"host-1"}
    assert base.statuses["host-0"].state is HostState.FAILED
    assert "cannot be reached" in base.statuses["host-0"].problem


def test_a_host_that_cannot_even_be_started_has_failed_and_does_not_hold_the_others() -> None:
    """Nothing of it came so far that a probe finds it: without its words it is never settled."""
    base, head, fleet, clock = make_base()
    works = fleet.join

    def join(host: str) -> None:
        if host == "host-0":
            raise FleetError("its folder is a file")
        works(host)

    fleet.join = join  # type: ignore[method-assign]
    base.ensure(check=allowed)
    base.ensure(check=allowed)

    status = base.statuses["host-0"]
    assert (status.state, status.problem) == (HostState.FAILED, "its folder is a file")
    assert base.is_settled(head.ray.view().nodes)
    fleet.join = works  # type: ignore[method-assign]
    clock.advance(1000.0)
    base.ensure(check=allowed)
    base.ensure(check=allowed)
    assert base.statuses["host-0"].state is HostState.JOINED


def test_what_fails_is_tried_less_and_less_often() -> None:
    base, head, _, clock = make_base(0)
    head.is_broken = True
    tried_at: list[float] = []
    for _ in range(2000):
        if base.ensure(check=allowed):
            tried_at.append(clock.monotonic_s())
        clock.advance(1.0)

    gaps = [round(b - a) for a, b in pairwise(tried_at)]
    assert gaps[:6] == [10, 20, 40, 80, 160, 300]
    assert set(gaps[6:]) == {300}


def test_a_head_that_ran_well_is_started_at_once_when_it_fails_again() -> None:
    base, head, _, clock = make_base(0)
    for _ in range(20):
        base.ensure(check=allowed)
        clock.advance(1000.0)
        base.ensure(check=allowed)
        head.is_up = False
        starts = head.starts

        base.ensure(check=allowed)
        assert head.starts == starts + 1
        clock.advance(11.0)
        head.is_up = False
        base.ensure(check=allowed)
        assert head.starts == starts + 2, "and ten seconds later, if need be"
        clock.advance(1000.0)


@pytest.mark.parametrize("call", ["ensure", "stop"])
def test_a_fenced_controller_starts_and_ends_nothing(call: str) -> None:
    base, head, fleet, _ = make_base()

    def fenced() -> None:
        raise FencedError("another controller took over")

    act: Callable[..., object] = getattr(base, call)
    with pytest.raises(FencedError):
        act(check=fenced)

    assert (head.starts, head.stops, fleet.joined) == (0, 0, set())


def test_what_cannot_be_ended_is_named_and_the_rest_is_ended() -> None:
    base, head, fleet, _ = make_base()
    base.ensure(check=allowed)
    fleet.unreachable = {"host-0"}

    left = base.stop(check=allowed)

    assert left == ["host host-0: host-0 cannot be reached"]
    assert (head.is_up, fleet.joined) == (False, {"host-0"})


def test_hosts_that_are_joining_count_as_coming(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fleet.slow = {"host-1"}
    world.run(5)

    hosts = {h.name: h.is_coming for h in world.loop.base.hosts(world.loop.ray.view.nodes)}

    assert hosts == {"host-0": False, "host-1": True}
    assert not world.loop.is_ready


def test_a_thousand_nodes_that_join_are_one_commit(tmp_path: Path) -> None:
    world = World(tmp_path, host_count=1000)
    world.tracer.is_recording = True
    world.run(2)

    appends = [p for p in world.tracer.points if p.call == "append" and not p.is_after]

    assert world.kinds().count("node_joined") == 1001
    assert len(appends) < 10


def test_a_host_that_died_is_started_again_and_both_are_written_down(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(5)
    world.fleet.joined.discard("host-0")
    world.ray.kill(next(n for n in world.ray.nodes.values() if n.host == "host-0"))

    world.run(15)

    kinds = world.kinds()
    assert kinds.count("node_died") == 1
    assert kinds.count("base_restarted") == 4
    assert world.loop.base.statuses["host-0"].state is HostState.JOINED


def test_what_a_host_says_that_it_brings_counts_more_than_the_configuration() -> None:
    base, _, fleet, _ = make_base(1)
    fleet.shapes["host-0"] = {"GPU": 8.0, "accelerator_type:A100": 1.0}
    assert base.hosts(())[0].shape == {"GPU": 4.0}

    base.ensure(check=allowed)

    assert base.hosts(())[0].shape == {"GPU": 8.0, "accelerator_type:A100": 1.0}


def test_hosts_are_ended_together_and_each_that_could_not_be_is_told() -> None:
    base, head, fleet, _ = make_base(3)
    base.ensure(check=allowed)
    fleet.unreachable = {"host-1"}
    batches: list[int] = []

    def together(calls: Sequence[Callable[[], str]]) -> Iterator[tuple[int, str]]:
        batches.append(len(calls))
        yield from reversed([(place, call()) for place, call in enumerate(calls)])

    base.together = together  # type: ignore[assignment]  # of one type of answer
    left = base.stop(check=allowed)

    assert batches == [3]
    assert [words.partition(":")[0] for words in left] == ["host host-1"]
    assert fleet.joined == {"host-1"}
    assert head.stops == 1

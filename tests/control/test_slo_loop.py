"""A broken promise in the simulated world: the loop rents for it, says why, and tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.slo import SloWatch, Watched
from hybrid.core.slo import Judgement, Load, Slo, SloState
from tests.world.world import World, make_params

BROKEN = Judgement(
    SloState.BROKEN,
    since_s=1_000.0,
    value_ms=1_500,
    why="slow",
    rate_rps=10,
    known_state=SloState.BROKEN,
)
GPU = {"GPU": 1.0}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A cluster whose home is full, whose queue may wait for an hour, and a slow service."""
    made = World(tmp_path, params=make_params(max_wait_s=3_600.0))
    made.ray.submit(8, GPU, 10_000.0)
    made.run(20)
    return made


def watch(world: World) -> None:
    service = Watched(
        name="chat",
        app="chat",
        deployment="",
        slo=Slo(target_ms=1_000),
        shape=GPU,
        most_count=8,
        judge=lambda: (BROKEN, Load(2, 2, 310.0)),
    )
    world.loop.slo = SloWatch([service], world.clock, world.loop.book.record)


def test_a_broken_promise_rents_though_nothing_waits_in_ray(world: World) -> None:
    watch(world)

    world.run(90, until=lambda: bool(world.rows()))

    (row,) = world.rows()
    assert row.reason.code == "slo_breach"
    assert world.kinds().count("service_broken") == 1
    world.desk.publish()
    (view,) = world.desk.status().services
    assert (view.name, view.state) == ("chat", "broken")
    assert view.ahead_count > 0
    assert world.desk.status().demand == (), "what is added is no work that waits"


def test_nothing_is_rented_without_the_watch(world: World) -> None:
    world.run(90)

    assert world.rows() == []


def test_a_watch_that_fails_stops_neither_leases_nor_drains(world: World) -> None:
    def fail() -> tuple[Judgement, Load]:
        raise RuntimeError("a bug")

    watch(world)
    world.loop.slo._services = (
        world.loop.slo._services[0].__class__(
            **{**vars(world.loop.slo._services[0]), "judge": fail}
        ),
    )

    with pytest.raises(RuntimeError, match="a bug"):
        world.loop.tick()

    assert world.loop.ray.source.is_up

"""A controller that crashes at any point of a burst, or of `down`, and one that takes over.

Items 2, 3, 4, 10, 11, 19, 22, 23 and 26 of the reliability contract. Each history is a world of
its own: a story is played, the controller dies at one numbered point of it (before or after one
call to a cloud, to Ray or to the ledger), the world goes on without it for a while, and a new
controller takes over. `World` and `history` hold the promises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hybrid.core.errors import CapacityError, ThrottledError
from tests.world.fixtures import Count
from tests.world.history import Cut, Story, points_of, replay, replay_fault
from tests.world.quick import roomy_params
from tests.world.trace import Point
from tests.world.world import World, make_offer, two_clouds

PAUSES_S = (0.0, 5.0, 120.0)

BURST = Story("burst")
DOWN = Story("down", down_s=60.0)
DOWN_NOW = Story("down-now", down_s=0.0, may_lose_work=True)


def closing(*, is_on: bool) -> Callable[[World], None]:
    """Return what the program does at its start, with and without `--closing`."""

    def start(world: World) -> None:
        changes = {"is_closing": is_on, "close_by_s": None}
        world.ledger.set_mode(world.ledger.mode().model_copy(update=changes))

    return start


DOWN_AGAIN = Story(
    "down-then-closing-again", down_s=60.0, after_crash=closing(is_on=True), may_lose_work=True
)
UP_AGAIN = Story("down-then-up-again", down_s=60.0, after_crash=closing(is_on=False))
LATE = Story("work-lands-meanwhile", late_count=4, max_nodes=3)


def spoil(**changes: object) -> Callable[[World], None]:
    """Return what makes the first cloud of a world unkind."""

    def prepare(world: World) -> None:
        for name, value in changes.items():
            setattr(world.cloud, name, list(value) if isinstance(value, list) else value)

    return prepare


SOLD_OUT = CapacityError("sold out", provider="sim")
SLOW_DOWN = ThrottledError("slow down", provider="sim")
GANGS = [
    Story(
        f"gang-{name}",
        gang_size=3,
        max_nodes=6,
        params=roomy_params,
        offers=[make_offer(boot_s=10.0, max_gang=4), two_clouds()[1]],
        prepare=spoil(launch_faults=faults),
    )
    for name, faults in {
        "whole": [],
        "answer-lost": ["lost", "lost"],
        "sold-out": [SOLD_OUT, SOLD_OUT],
        "lost-then-sold-out": ["lost", SOLD_OUT],
        "accepts-then-fails": ["fails_later"],
    }.items()
]
SHAPES = [
    Story("answer-lost", prepare=spoil(launch_faults=["lost"])),
    Story(
        "sold-out-then-the-next-offer",
        prepare=spoil(launch_faults=[SOLD_OUT, SOLD_OUT]),
        offers=[make_offer(boot_s=10.0), two_clouds()[1]],
    ),
    Story("lost-then-sold-out", prepare=spoil(launch_faults=["lost", SOLD_OUT]), max_nodes=3),
    Story("throttled", prepare=spoil(launch_faults=[SLOW_DOWN, SLOW_DOWN])),
    Story("hidden-from-two-lists", prepare=spoil(hide_lists=2, list_lag_s=20.0)),
    Story(
        "hidden-for-long-and-lost",
        prepare=spoil(hide_lists=10, list_lag_s=60.0, launch_faults=["lost"]),
    ),
    Story("ends-slowly", prepare=spoil(ends_slowly_s=40.0)),
    Story("accepts-then-fails", prepare=spoil(launch_faults=["fails_later"])),
    Story("forgets-what-ended", prepare=spoil(forgets_ended=True)),
    Story("lists-fail-for-a-while", prepare=spoil(fail_lists=5)),
    Story("lists-fail-for-long", prepare=spoil(fail_lists=30)),
    Story(
        "never-joins-then-the-next-offer",
        prepare=spoil(never_joins=True),
        offers=[make_offer(boot_s=10.0), two_clouds()[1]],
    ),
    *GANGS,
    DOWN_NOW,
    DOWN_AGAIN,
    UP_AGAIN,
]


def play_all(
    story: Story, pauses_s: Sequence[float], *, wanted: Callable[[Point], bool] = lambda _: True
) -> int:
    """Play a story once for each wanted point and pause; return how many histories that were."""
    cuts = [Cut(p, pause_s) for p in points_of(story) if wanted(p) for pause_s in pauses_s]
    failed = []
    for cut in cuts:
        try:
            replay(story, cut)
        except AssertionError as error:
            failed.append(f"{cut}: {error}")
    assert not failed, f"{len(failed)} of {len(cuts)} histories:\n" + "\n".join(failed[:10])
    return len(cuts)


def is_change(point: Point) -> bool:
    """Return whether the point is next to a call that changes something."""
    return not point.is_read


# Half an hour: every story with every pause, in memory and on disk.
ALL = [BURST, DOWN, LATE, *SHAPES] if "HYBRID_ALL_HISTORIES" in os.environ else []


@pytest.mark.slow
@pytest.mark.parametrize("story", [BURST, DOWN], ids=lambda s: s.name)
def test_a_crash_at_any_point_loses_nothing_and_doubles_nothing(
    story: Story, count_histories: Count
) -> None:
    """Every point, with no pause, a short one and a long one: more than 1,500 histories."""
    count = play_all(story, PAUSES_S)

    count_histories(count)
    assert count > 700


@pytest.mark.slow
@pytest.mark.parametrize("story", [BURST, DOWN], ids=lambda s: s.name)
def test_a_crash_next_to_any_change_on_a_real_ledger(story: Story, count_histories: Count) -> None:
    count = play_all(replace(story, is_on_disk=True), [5.0], wanted=is_change)

    count_histories(count)


@pytest.mark.slow
def test_work_that_lands_while_nobody_looks_is_not_killed(count_histories: Count) -> None:
    count_histories(play_all(LATE, [120.0]))


@pytest.mark.slow
@pytest.mark.parametrize("story", SHAPES, ids=lambda s: s.name)
def test_a_crash_amid_other_trouble_loses_nothing_and_doubles_nothing(
    story: Story, count_histories: Count
) -> None:
    count_histories(play_all(story, [5.0], wanted=is_change))


@pytest.mark.slow
@pytest.mark.parametrize("story", [BURST, DOWN], ids=lambda s: s.name)
def test_a_call_that_fails_once_costs_a_tick(story: Story, count_histories: Count) -> None:
    """No crash: one call gets no answer, before it did anything or after it did all."""
    points = [p for p in points_of(story) if p.call not in ("acquire", "set_mode")]
    for point in points:
        replay_fault(story, point)

    count_histories(len(points))


@pytest.mark.slow
@pytest.mark.parametrize("is_on_disk", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("story", ALL, ids=lambda s: s.name)
@pytest.mark.timeout(3600)
def test_every_point_of_every_story_with_every_pause(
    story: Story, is_on_disk: bool, count_histories: Count
) -> None:
    count_histories(play_all(replace(story, is_on_disk=is_on_disk), PAUSES_S))

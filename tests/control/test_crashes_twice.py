"""Two crashes in one history: the controller that took over dies too, also while it recovers.

Item 26 of the reliability contract at depth 2. There are millions of such histories, so those of
each story are sampled, with seeds that are fixed: the first crash anywhere, the second one mostly
soon after, when the new controller starts and repairs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.control.test_crashes import BURST, DOWN, LATE, SHAPES
from tests.world.fixtures import Count
from tests.world.history import Cut, Story, TwoCuts, points_of, replay_two
from tests.world.trace import Point

PAUSES_S = (0.0, 5.0, 30.0, 120.0)
# Points of a controller's start and first tick: where it repairs what the last one left.
RECOVERY = 40
FAR = 250
SAMPLES = 2000 if "HYBRID_ALL_HISTORIES" in os.environ else 150


def patient(story: Story) -> Story:
    """Give `down` so much time that two pauses without a controller do not use it up."""
    return replace(story, down_s=400.0) if story.down_s and not story.may_lose_work else story


STORIES = [patient(story) for story in (BURST, DOWN, LATE, *SHAPES)]


def sample(points: Sequence[Point], count: int, *, seed: str) -> Iterator[TwoCuts]:
    """Yield random pairs of crashes; next to a change, since reads leave the world as it is."""
    rng = random.Random(seed)
    changes = [point for point in points if not point.is_read]
    for _ in range(count):
        first = Cut(rng.choice(changes), rng.choice(PAUSES_S))
        is_early = rng.random() < 0.75
        second = rng.randrange(RECOVERY) if is_early else rng.randrange(RECOVERY, FAR)
        yield TwoCuts(first, second, rng.choice(PAUSES_S))


def play(story: Story, histories: Iterator[TwoCuts]) -> tuple[int, int]:
    """Play histories; return how many there were, and in how many both crashes came."""
    failed, count, twice = [], 0, 0
    for cuts in histories:
        count += 1
        try:
            twice += replay_two(story, cuts)
        except AssertionError as error:
            failed.append(f"{cuts}: {error}")
    assert not failed, f"{len(failed)} of {count} histories:\n" + "\n".join(failed[:10])
    return count, twice


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.name)
@pytest.mark.timeout(3600)
def test_a_second_crash_soon_after_the_first_loses_nothing_and_doubles_nothing(
    story: Story, count_histories: Count
) -> None:
    count, twice = play(story, sample(points_of(story), SAMPLES, seed=story.name))

    count_histories(count)
    assert twice > 0.6 * count, "histories in which the second crash never comes prove little"


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES[:2], ids=lambda s: s.name)
def test_a_crash_at_every_point_of_a_recovery_loses_nothing_and_doubles_nothing(
    story: Story, count_histories: Count
) -> None:
    """Each point of the start and first tick after a crash, for some first crashes."""
    changes = [point for point in points_of(story) if not point.is_read]
    firsts = random.Random(4).sample(changes, 4)
    histories = (
        TwoCuts(Cut(first, 30.0), second, 5.0) for first in firsts for second in range(RECOVERY)
    )

    count, _ = play(story, histories)

    count_histories(count)

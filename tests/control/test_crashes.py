"""A controller that crashes at any point of a burst, or of `down`, and one that takes over.

Items 2, 3, 10, 11, 22, 23 and 26 of the reliability contract.
"""

from __future__ import annotations

import pytest

from tests.world.history import Cut, Story, points_of, replay

PAUSES_S = (0.0, 5.0, 120.0)

BURST = Story("burst")
DOWN = Story("down", down_s=60.0)
LATE = Story("late", late_count=4)


@pytest.mark.parametrize("story", [LATE], ids=lambda s: s.name)
@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_a_crash_at_any_point_loses_nothing_and_doubles_nothing(
    story: Story, pause_s: float
) -> None:
    points = points_of(story)
    failed = []
    for point in points:
        try:
            replay(story, Cut(point, pause_s))
        except AssertionError as error:
            failed.append(f"{Cut(point, pause_s)}: {error}")
    assert not failed, f"{len(failed)} of {len(points)}: " + "\n".join(failed[:10])

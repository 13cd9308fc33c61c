"""Random histories of the queue hold what the queue promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.models import JobState
from tests.jobs.random_queue import RandomQueue
from tests.world.fixtures import Count

SEEDS = 40


@pytest.mark.slow
def test_random_queues_lose_double_and_invert_nothing(
    tmp_path: Path, count_histories: Count
) -> None:
    placed = compared = 0
    states = set()
    for seed in range(SEEDS):
        history = RandomQueue(seed, tmp_path / str(seed))
        world = history.play()
        placed, compared = placed + history.placed, compared + history.compared
        states |= {job.state for job in world.ledger.jobs(limit=None)}
        count_histories(1)
    assert placed > 10 * SEEDS
    assert compared > SEEDS // 2, "or the order was never tested"
    assert states == {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}

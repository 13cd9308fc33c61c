"""Random histories with many faults at once; see `tests.world.chaos`.

The seeds are fixed, so that a failure can be played again: its message has every misfortune.
"""

from __future__ import annotations

import os

import pytest

from tests.world.chaos import Chaos
from tests.world.fixtures import Count

SEEDS_A_TEST = 20
BLOCKS = 200 if "HYBRID_ALL_HISTORIES" in os.environ else 3


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_after_bad_luck_everything_comes_right(block: int, count_histories: Count) -> None:
    launched = 0
    for seed in range(block * SEEDS_A_TEST, (block + 1) * SEEDS_A_TEST):
        launched += len(Chaos(seed).run().machines())

    count_histories(SEEDS_A_TEST)
    assert launched > SEEDS_A_TEST, "histories in which nothing is rented prove little"

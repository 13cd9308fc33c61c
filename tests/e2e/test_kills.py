"""The controller is killed with -9 at random moments while bursts come and go.

What the clouds themselves have on record is the judge. `HYBRID_KILLS` says how many kills (8), and
`HYBRID_SEED` draws them again; `scripts/kills` runs the same for longer.
"""

from __future__ import annotations

import json
import os
import random

import pytest

from tests.bodies import have_bodies
from tests.e2e.kills import storm

KILLS = int(os.environ.get("HYBRID_KILLS", "8"))
SEED = int(os.environ.get("HYBRID_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300 + 60 * KILLS)]


def test_after_many_kills_nothing_is_left_nothing_was_doubled_and_no_cap_was_passed() -> None:
    with storm(seed=SEED, has_bodies=have_bodies()) as found:
        found.blow(KILLS)
        told = json.dumps(found.facts(), indent=2)

        assert found.problems() == [], told
        assert sum(found.kinds.values()) == KILLS
        assert found.chronicle.lives, told

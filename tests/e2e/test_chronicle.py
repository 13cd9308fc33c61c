"""The judge of the kills can condemn: what it is to find is done to a cloud, by other hands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.accounts import CLUSTER, INSTANCE
from tests.e2e.chronicle import Chronicle
from tests.e2e.clouds import Clouds, emulated
from tests.e2e.tide import SIZES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clouds() -> Iterator[Clouds]:
    with emulated() as clouds:
        yield clouds


@pytest.fixture
def chronicle(clouds: Clouds) -> Chronicle:
    """A chronicle of an account that is empty."""
    clouds.aws.emulator.reset()
    chronicle = Chronicle(clouds, SIZES)
    chronicle.begin()
    return chronicle


def rent(clouds: Clouds, intent: str) -> str:
    """Rent a machine at AWS for an intent."""
    return clouds.aws.add_stranger({CLUSTER: "c", INSTANCE: intent})


def test_two_machines_for_one_intent_are_seen(clouds: Clouds, chronicle: Chronicle) -> None:
    rent(clouds, "i-1")
    rent(clouds, "i-2")
    rent(clouds, "i-1")

    assert chronicle.per_intent == {("c", "i-1"): 2, ("c", "i-2"): 1}
    assert chronicle.problems == []


def test_the_most_at_one_moment_is_kept_and_what_lives_is_named(
    clouds: Clouds, chronicle: Chronicle
) -> None:
    first, second = rent(clouds, "i-1"), rent(clouds, "i-2")
    clouds.aws.delete_by_hand(first)
    third = rent(clouds, "i-3")

    assert chronicle.alive == sorted(f"aws {name}" for name in (second, third))
    assert (chronicle.peak.nodes, chronicle.peak.gpus) == (2, 2)
    assert chronicle.peak.usd_per_hour == 2 * SIZES["aws"].usd_per_hour
    assert chronicle.spent_usd() > 0


def test_what_changes_is_told_before_the_answer_leaves(
    clouds: Clouds, chronicle: Chronicle
) -> None:
    told: list[str] = []
    chronicle.on_change = told.append

    rent(clouds, "i-1")

    assert told == ["aws"]


def test_a_machine_that_cannot_be_read_is_a_problem(clouds: Clouds, chronicle: Chronicle) -> None:
    """Then nothing can be said, and the kills must not pass."""
    with pytest.raises(Exception, match=r"500"):
        clouds.aws.add_stranger({CLUSTER: "c"})  # no intent

    assert [p for p in chronicle.problems if INSTANCE in p]

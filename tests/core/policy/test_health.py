"""Tests of what counts as dead, and of how much at once is too much to believe."""

from __future__ import annotations

import pytest

from hybrid.core.models import InstanceState, NodeStatus
from hybrid.core.policy.health import Health, health_of
from tests.core.make import make_instance, make_node

S = InstanceState


@pytest.mark.parametrize(
    ("bad", "count", "ratio", "is_trouble"),
    [
        (0, 10, 0.2, False),
        (1, 1, 0.0, False),
        (2, 10, 0.2, False),
        (3, 10, 0.2, True),
        (2, 2, 0.2, True),
        (10, 10, 1.0, False),
    ],
)
def test_more_than_a_share_and_more_than_one_is_trouble(
    bad: int, count: int, ratio: float, is_trouble: bool
) -> None:
    health = Health(tuple(f"n-{n}" for n in range(bad)), count)

    assert health.is_mass_trouble(ratio) is is_trouble


def test_hosts_that_were_nodes_and_instances_that_should_be_are_counted() -> None:
    nodes = (
        make_node("up"),
        make_node("back", status=NodeStatus.DEAD),
        make_node("back"),
        make_node("down", status=NodeStatus.DEAD),
        make_node("n-1", instance_id="i-1"),
        make_node("n-2", instance_id="i-2", status=NodeStatus.DEAD),
    )
    instances = (
        make_instance("i-1", S.RUNNING),
        make_instance("i-2", S.RUNNING),
        make_instance("unseen", S.RUNNING),
        make_instance("coming", S.BOOTING),
        make_instance("never-came", S.TERMINATING),
        make_instance("died", S.TERMINATING, joined_at_s=1.0),
        make_instance("came-home", S.TERMINATING, joined_at_s=1.0, drain_kind="idle"),
    )

    health = health_of(nodes, ["up", "back", "down", "never-was"], instances)

    assert health == Health(("down", "i-2", "unseen", "died"), 3 + 4)

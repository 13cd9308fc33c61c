"""Idle times that survive the leaving of other nodes."""

from __future__ import annotations

import pytest

from hybrid.adapters.ray.idle import IdleMemory
from hybrid.core.models import Node, NodeStatus


def make_node(node_id: str, *, idle_s: float | None, status: NodeStatus | None = None) -> Node:
    status = status or (NodeStatus.RUNNING if idle_s is None else NodeStatus.IDLE)
    return Node(node_id=node_id, total={}, available={}, status=status, idle_s=idle_s)


def idle_s_of(memory: IdleMemory, *nodes: Node, now_s: float) -> float | None:
    return memory.mend(nodes, now_s=now_s)[0].idle_s


def test_the_first_view_is_taken_as_it_is() -> None:
    assert idle_s_of(IdleMemory(), make_node("a", idle_s=7.0), now_s=100.0) == 7.0


def test_an_idle_time_goes_on_when_another_node_is_drained() -> None:
    memory = IdleMemory()
    idle_s_of(memory, make_node("a", idle_s=60.0), make_node("b", idle_s=60.0), now_s=100.0)
    gone = make_node("b", idle_s=None, status=NodeStatus.DEAD)

    at_once = idle_s_of(memory, make_node("a", idle_s=62.0), gone, now_s=102.0)
    a_second_later = idle_s_of(memory, make_node("a", idle_s=1.0), gone, now_s=103.0)
    much_later = idle_s_of(memory, make_node("a", idle_s=101.0), gone, now_s=203.0)

    assert (at_once, a_second_later, much_later) == (62.0, 63.0, 163.0)


def test_an_idle_time_goes_on_when_two_nodes_are_drained_one_after_the_other() -> None:
    memory = IdleMemory()
    idle_s_of(memory, make_node("a", idle_s=60.0), now_s=100.0)
    gone_b = make_node("b", idle_s=None, status=NodeStatus.DRAINING)
    gone_c = make_node("c", idle_s=None, status=NodeStatus.DEAD)
    idle_s_of(memory, make_node("a", idle_s=2.0), gone_b, now_s=105.0)

    idle_s = idle_s_of(memory, make_node("a", idle_s=1.0), gone_b, gone_c, now_s=150.0)

    assert idle_s == 110.0


@pytest.mark.parametrize("said_s", [3.0, 40.0], ids=["just-now", "a-while-ago"])
def test_work_starts_the_idle_time_anew_when_no_node_left(said_s: float) -> None:
    memory = IdleMemory()
    idle_s_of(memory, make_node("a", idle_s=60.0), now_s=100.0)

    assert idle_s_of(memory, make_node("a", idle_s=said_s), now_s=150.0) == said_s


def test_work_long_after_a_node_left_starts_the_idle_time_anew() -> None:
    memory = IdleMemory()
    gone = make_node("b", idle_s=None, status=NodeStatus.DEAD)
    idle_s_of(memory, make_node("a", idle_s=60.0), now_s=100.0)
    idle_s_of(memory, make_node("a", idle_s=1.0), gone, now_s=105.0)

    assert idle_s_of(memory, make_node("a", idle_s=2.0), gone, now_s=150.0) == 2.0


def test_a_node_seen_busy_starts_anew_even_while_another_leaves() -> None:
    memory = IdleMemory()
    gone = make_node("b", idle_s=None, status=NodeStatus.DEAD)
    idle_s_of(memory, make_node("a", idle_s=60.0), now_s=100.0)
    assert idle_s_of(memory, make_node("a", idle_s=None), gone, now_s=105.0) is None

    assert idle_s_of(memory, make_node("a", idle_s=1.0), gone, now_s=107.0) == 1.0


def test_nodes_dead_at_the_start_shake_nothing() -> None:
    memory = IdleMemory()
    gone = make_node("b", idle_s=None, status=NodeStatus.DEAD)
    idle_s_of(memory, make_node("a", idle_s=60.0), gone, now_s=100.0)

    assert idle_s_of(memory, make_node("a", idle_s=1.0), gone, now_s=101.0) == 1.0

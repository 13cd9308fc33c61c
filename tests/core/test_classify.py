"""Tests of what the world says about one instance: ledger x cloud x Ray -> at most one fact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from hybrid.core.classify import Patience, Sight, classify, count_miss, is_absence_believable
from hybrid.core.lifecycle import ENDED, TRANSITIONS, Deadlines, Fact, advance
from hybrid.core.models import (
    CloudInstance,
    CloudState,
    Instance,
    InstanceState,
    Node,
    NodeStatus,
    Reason,
)
from tests.core.make import NOW_S, make_cloud, make_instance, make_node

S, F, C = InstanceState, Fact, CloudState
PATIENCE = Patience(miss_count=3, list_lag_s=120.0, proof_s=600.0, node_absent_s=60.0)
LIVE = tuple(s for s in S if s not in ENDED)


def node(status: NodeStatus) -> Node:
    return make_node("i-1", instance_id="i-1", status=status)


UP, IDLE, LEAVING, DEAD = (
    node(s) for s in (NodeStatus.RUNNING, NodeStatus.IDLE, NodeStatus.DRAINING, NodeStatus.DEAD)
)
SILENT = Sight(is_listed=False, is_ray_up=False)


def seen(
    cloud: CloudInstance | None = None,
    node: Node | None = None,
    *,
    absent_s: float = 0.0,
    is_ray_up: bool = True,
) -> Sight:
    """Return a look at a cloud that answers."""
    return Sight(
        is_listed=True, cloud=cloud, is_ray_up=is_ray_up, node=node, node_absent_s=absent_s
    )


def unlisted(node: Node | None = None, *, absent_s: float = 0.0) -> Sight:
    """Return a look at a Ray that answers, while the cloud does not."""
    return Sight(is_listed=False, is_ray_up=True, node=node, node_absent_s=absent_s)


def missed(
    state: InstanceState, *, count: int = 3, since_s: float = NOW_S - 700.0, **more: Any
) -> Instance:
    return make_instance(
        state=state, missing_count=count, missing_since_s=since_s, state_at_s=since_s, **more
    )


CASES = {
    # The cloud's own word is stronger than anything else.
    "gone-while-ray-sees-it": (S.RUNNING, seen(make_cloud(C.GONE), UP), F.GONE),
    "gone-while-requested": (S.REQUESTED, seen(make_cloud(C.GONE)), F.GONE),
    "gone-while-booting": (S.BOOTING, seen(make_cloud(C.GONE)), F.GONE),
    "gone-while-draining": (S.DRAINING, seen(make_cloud(C.GONE), LEAVING), F.GONE),
    "gone-while-terminating": (S.TERMINATING, seen(make_cloud(C.GONE)), F.GONE),
    "gone-while-lost": (S.LOST, seen(make_cloud(C.GONE)), F.GONE),
    "gone-while-ray-is-down": (S.RUNNING, seen(make_cloud(C.GONE), is_ray_up=False), F.GONE),
    # Found.
    "requested-and-listed": (S.REQUESTED, seen(make_cloud(C.PENDING)), F.FOUND_IN_CLOUD),
    "requested-and-stopping": (S.REQUESTED, seen(make_cloud(C.STOPPING)), F.FOUND_IN_CLOUD),
    "requested-not-listed": (S.REQUESTED, seen(), None),
    "requested-nothing-seen": (S.REQUESTED, SILENT, None),
    "requested-and-already-a-node": (S.REQUESTED, seen(None, UP), F.LAUNCH_ACCEPTED),
    "requested-already-a-node-and-listed": (
        S.REQUESTED,
        seen(make_cloud(), UP),
        F.FOUND_IN_CLOUD,
    ),
    "requested-and-its-node-died": (S.REQUESTED, seen(None, DEAD), None),
    "lost-and-listed-again": (S.LOST, seen(make_cloud()), F.FOUND_IN_CLOUD),
    "lost-with-a-live-node": (S.LOST, seen(None, UP), None),
    "lost-nothing-seen": (S.LOST, SILENT, None),
    # Booting.
    "booting-and-joined": (S.BOOTING, seen(make_cloud(), UP), F.NODE_JOINED),
    "booting-and-joined-idle": (S.BOOTING, seen(make_cloud(), IDLE), F.NODE_JOINED),
    "booting-and-joined-unlisted": (S.BOOTING, unlisted(UP), F.NODE_JOINED),
    "booting-and-joined-draining": (S.BOOTING, seen(make_cloud(), LEAVING), F.NODE_JOINED),
    "booting-joined-and-died": (S.BOOTING, seen(make_cloud(), DEAD), F.NODE_FAILED),
    "booting-with-a-problem": (S.BOOTING, seen(make_cloud(problem="no GPU")), F.NODE_FAILED),
    "booting-joined-in-spite-of-it": (
        S.BOOTING,
        seen(make_cloud(problem="slow disk"), UP),
        F.NODE_JOINED,
    ),
    "booting-no-node-yet": (S.BOOTING, seen(make_cloud(), absent_s=900.0), None),
    "booting-stopping": (S.BOOTING, seen(make_cloud(C.STOPPING)), None),
    # Running.
    "running-well": (S.RUNNING, seen(make_cloud(), UP), None),
    "running-idle": (S.RUNNING, seen(make_cloud(), IDLE), None),
    "running-and-draining-unasked": (S.RUNNING, seen(make_cloud(), LEAVING), F.DRAIN_STARTED),
    "draining-as-asked": (S.DRAINING, seen(make_cloud(), LEAVING), None),
    "running-nothing-seen": (S.RUNNING, SILENT, None),
    "running-ray-down": (S.RUNNING, seen(make_cloud(), is_ray_up=False), None),
    "running-ray-down-with-a-problem": (
        S.RUNNING,
        seen(make_cloud(problem="exited"), is_ray_up=False),
        None,
    ),
    "running-node-dead": (S.RUNNING, seen(make_cloud(), DEAD), F.NODE_FAILED),
    "running-node-dead-unlisted": (S.RUNNING, unlisted(DEAD), F.NODE_FAILED),
    "running-node-absent-briefly": (S.RUNNING, seen(make_cloud(), absent_s=59.9), None),
    "running-node-absent-too-long": (S.RUNNING, seen(make_cloud(), absent_s=60.0), F.NODE_FAILED),
    "running-absent-with-a-problem": (
        S.RUNNING,
        seen(make_cloud(problem="exited"), absent_s=1.0),
        F.NODE_FAILED,
    ),
    "running-alive-with-a-problem": (S.RUNNING, seen(make_cloud(problem="exited"), UP), None),
    "running-while-the-cloud-stops-it": (S.RUNNING, seen(make_cloud(C.STOPPING), UP), None),
    # Draining.
    "draining-at-work": (S.DRAINING, seen(make_cloud(), LEAVING), None),
    "draining-and-done": (S.DRAINING, seen(make_cloud(), DEAD), F.DRAINED),
    "draining-and-absent": (S.DRAINING, seen(make_cloud(), absent_s=60.0), F.DRAINED),
    "draining-alive-with-a-problem": (
        S.DRAINING,
        seen(make_cloud(problem="exited"), LEAVING),
        None,
    ),
    "draining-ray-down": (S.DRAINING, seen(make_cloud(), is_ray_up=False), None),
    # Terminating: only the cloud's word counts, and absence is none.
    "terminating-listed": (S.TERMINATING, seen(make_cloud(C.STOPPING)), None),
    "terminating-not-listed": (S.TERMINATING, seen(), None),
    "terminating-node-alive": (S.TERMINATING, seen(make_cloud(), UP), None),
}


@pytest.mark.parametrize(("state", "sight", "expected"), CASES.values(), ids=CASES)
def test_one_look_gives_the_fact_it_should(
    state: InstanceState, sight: Sight, expected: Fact | None
) -> None:
    found = classify(make_instance(state=state), sight, now_s=NOW_S, patience=PATIENCE)

    assert (found[0] if found else None) is expected


@pytest.mark.parametrize(
    ("cloud", "words"),
    [
        (make_cloud(C.GONE), "the cloud says it is gone"),
        (make_cloud(C.GONE, problem="reclaimed"), "reclaimed"),
    ],
)
def test_the_clouds_own_words_for_an_end_are_kept(cloud: CloudInstance, words: str) -> None:
    found = classify(make_instance(), seen(cloud), now_s=NOW_S, patience=PATIENCE)

    assert found == (F.GONE, words)


def test_a_machine_that_said_why_before_it_went_is_believed() -> None:
    sight = seen(make_cloud(C.GONE)).model_copy(update={"node_problem": "no Python here"})

    found = classify(make_instance(state=S.BOOTING), sight, now_s=NOW_S, patience=PATIENCE)

    assert found == (F.GONE, "no Python here")


def test_that_ray_ended_is_no_trouble_of_a_node_that_was_drained() -> None:
    drained = make_instance(
        state=S.TERMINATING, drain_reason=Reason(code="idle", message="idle for 6 s")
    )
    gone = make_cloud(C.GONE, problem="Ray ended by itself: raylet ended with exit code 0")

    found = classify(drained, seen(gone), now_s=NOW_S, patience=PATIENCE)

    assert found == (F.GONE, "the cloud says it is gone")


# --- much looks dead at once (reliability 21) -----------------------------------------------


@pytest.mark.parametrize(
    ("instance", "more", "fact"),
    [
        pytest.param(make_instance(), {}, None, id="dead"),
        pytest.param(make_instance(), {"node": None, "node_absent_s": 1e6}, None, id="absent"),
        pytest.param(make_instance(), {"node_problem": "raylet ended"}, F.NODE_FAILED, id="said"),
        pytest.param(
            make_instance(), {"cloud": make_cloud(problem="impaired")}, F.NODE_FAILED, id="cloud"
        ),
        pytest.param(
            make_instance(state=S.DRAINING, drain_kind="idle"), {}, F.DRAINED, id="idle-drain"
        ),
        pytest.param(
            make_instance(state=S.DRAINING, drain_kind="busy", deadline_at_s=NOW_S + 1),
            {},
            None,
            id="busy-drain",
        ),
        pytest.param(
            make_instance(state=S.DRAINING, drain_kind="busy", deadline_at_s=NOW_S),
            {},
            F.DRAIN_OVERDUE,
            id="overdue-drain",
        ),
    ],
)
def test_what_only_ray_calls_dead_is_left_alone_while_much_looks_dead(
    instance: Instance, more: dict[str, Any], fact: Fact | None
) -> None:
    sight = seen(make_cloud(), DEAD).model_copy(update=more)
    trouble = sight.model_copy(update={"is_mass_trouble": True})

    held = classify(instance, trouble, now_s=NOW_S, patience=PATIENCE)

    assert (held and held[0]) == fact
    assert classify(instance, sight, now_s=NOW_S, patience=PATIENCE) is not None


# --- missing is not dead (reliability 7) ----------------------------------------------------


@pytest.mark.parametrize("state", [S.BOOTING, S.RUNNING, S.DRAINING])
@pytest.mark.parametrize(
    ("count", "for_s", "sight", "expected"),
    [
        pytest.param(3, 120.0, seen(), F.MISSING, id="enough"),
        pytest.param(2, 120.0, seen(), None, id="one-list-short"),
        pytest.param(3, 119.9, seen(), None, id="within-the-lag"),
        pytest.param(9, 900.0, seen(None, UP), None, id="alive-in-ray"),
        pytest.param(9, 900.0, seen(None, LEAVING), None, id="alive-in-ray-draining"),
        pytest.param(9, 900.0, unlisted(), None, id="list-unread"),
        pytest.param(9, 900.0, seen(is_ray_up=False), None, id="ray-down"),
        pytest.param(9, -900.0, seen(), None, id="clock-went-back"),
    ],
)
def test_an_instance_is_lost_only_after_enough_lists_time_and_no_sign_of_life(
    state: InstanceState, count: int, for_s: float, sight: Sight, expected: Fact | None
) -> None:
    instance = missed(state, count=count, since_s=NOW_S - for_s)

    found = classify(instance, sight, now_s=NOW_S, patience=PATIENCE)

    if state is S.RUNNING and sight.node == LEAVING:
        expected = Fact.DRAIN_STARTED
    joined = state is S.BOOTING and sight.node is not None
    assert (found[0] if found else None) is (F.NODE_JOINED if joined else expected)


def test_a_list_that_hides_an_instance_n_minus_1_times_harms_nothing() -> None:
    instance = make_instance(state=S.RUNNING)
    for n in range(PATIENCE.miss_count - 1):
        instance = count_miss(instance, seen(None, None), now_s=NOW_S + 100 * n)

        assert classify(instance, seen(), now_s=NOW_S + 100 * n, patience=PATIENCE) is None
    back = count_miss(instance, seen(make_cloud()), now_s=NOW_S + 300)

    assert (back.missing_count, back.missing_since_s) == (0, None)


def test_the_words_of_a_loss_name_the_number_of_lists() -> None:
    found = classify(missed(S.RUNNING, count=7), seen(), now_s=NOW_S, patience=PATIENCE)

    assert found == (F.MISSING, "missing from 7 lists of the cloud in a row")


# --- never gone without the cloud's word (reliability 36) -----------------------------------


def test_a_lost_instance_with_an_id_waits_for_the_clouds_answer_for_ever() -> None:
    lost = missed(S.LOST, count=10_000, since_s=NOW_S - 1e7, provider_id="p-1")

    assert classify(lost, seen(), now_s=NOW_S, patience=PATIENCE) is None


@pytest.mark.parametrize(
    ("lag_s", "count", "for_s", "sight", "is_gone"),
    [
        pytest.param(120.0, 3, 600.0, seen(), True, id="proof-time-reached"),
        pytest.param(120.0, 3, 599.9, seen(), False, id="just-before-the-proof-time"),
        pytest.param(120.0, 2, 600.0, seen(), False, id="too-few-lists"),
        pytest.param(120.0, 3, 600.0, unlisted(), False, id="list-unread"),
        pytest.param(30.0, 3, 150.0, seen(), True, id="five-lags-are-enough"),
        pytest.param(30.0, 3, 149.9, seen(), False, id="less-than-five-lags"),
        pytest.param(900.0, 3, 899.9, seen(), False, id="never-before-the-lag"),
        pytest.param(900.0, 3, 900.0, seen(), True, id="a-lag-beyond-the-proof-time"),
        pytest.param(0.0, 3, 0.0, seen(), True, id="a-list-that-is-always-true"),
    ],
)
def test_a_launch_that_never_gave_an_id_is_written_off_after_a_proof(
    lag_s: float, count: int, for_s: float, sight: Sight, is_gone: bool
) -> None:
    lost = missed(S.LOST, count=count, since_s=NOW_S - for_s, provider_id="")
    ending = lost.model_copy(update={"state": S.TERMINATING})
    patience = PATIENCE.model_copy(update={"list_lag_s": lag_s})

    found = classify(lost, sight, now_s=NOW_S, patience=patience)
    ended = classify(ending, sight, now_s=NOW_S, patience=patience)

    assert (found[0] if found else None) is (F.GONE if is_gone else None)
    assert ended == found, "nor can one that is being ended be asked for without an id"


@pytest.mark.parametrize("state", [S.LOST, S.TERMINATING])
def test_a_node_that_ray_sees_alive_is_never_proved_absent(state: InstanceState) -> None:
    hidden = missed(state, count=99, since_s=NOW_S - 1e6, provider_id="")

    assert classify(hidden, seen(None, UP), now_s=NOW_S, patience=PATIENCE) is None


def test_the_proof_counts_from_the_last_create_call_not_from_the_first_miss() -> None:
    """The call is repeated until the row is LOST, so a machine may be one second old then."""
    lost = make_instance(
        state=S.LOST,
        provider_id="",
        missing_count=60,
        missing_since_s=NOW_S - 300.0,
        state_at_s=NOW_S - 1.0,
    )
    patience = PATIENCE.model_copy(update={"list_lag_s": 30.0})

    assert classify(lost, seen(), now_s=NOW_S, patience=patience) is None


# --- deadlines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "sight", "expected"),
    [
        pytest.param(S.REQUESTED, seen(), F.LAUNCH_OVERDUE, id="launch"),
        pytest.param(S.REQUESTED, SILENT, F.LAUNCH_OVERDUE, id="launch-all-blind"),
        pytest.param(S.BOOTING, seen(make_cloud()), F.JOIN_OVERDUE, id="join"),
        pytest.param(S.BOOTING, unlisted(), F.JOIN_OVERDUE, id="join-unlisted"),
        pytest.param(S.BOOTING, seen(make_cloud(), UP), F.NODE_JOINED, id="joined-after-all"),
        pytest.param(S.DRAINING, seen(make_cloud(), LEAVING), F.DRAIN_OVERDUE, id="drain"),
        pytest.param(S.DRAINING, seen(make_cloud(), DEAD), F.DRAINED, id="drained-in-time"),
        pytest.param(S.DRAINING, SILENT, F.DRAIN_OVERDUE, id="drain-all-blind"),
        pytest.param(S.TERMINATING, seen(make_cloud()), None, id="terminating-goes-on"),
        pytest.param(S.LOST, seen(), None, id="lost-goes-on"),
    ],
)
def test_a_passed_deadline_speaks_when_nothing_better_is_known(
    state: InstanceState, sight: Sight, expected: Fact | None
) -> None:
    instance = make_instance(state=state, deadline_at_s=NOW_S)

    before = classify(instance, sight, now_s=NOW_S - 0.1, patience=PATIENCE)
    found = classify(instance, sight, now_s=NOW_S, patience=PATIENCE)

    assert (found[0] if found else None) is expected
    overdue = {F.LAUNCH_OVERDUE, F.JOIN_OVERDUE, F.DRAIN_OVERDUE}
    assert before is None or before[0] not in overdue
    assert found is None or found[0] not in overdue or found[1], "an overdue fact has words"


@pytest.mark.parametrize(
    ("sight", "expected"),
    [
        pytest.param(seen(make_cloud(), UP), F.DRAIN_REFUSED, id="work-came"),
        pytest.param(seen(make_cloud(), IDLE), F.DRAIN_REFUSED, id="ray-never-heard"),
        pytest.param(seen(make_cloud(), LEAVING), F.DRAIN_OVERDUE, id="ray-took-it-and-hangs"),
        pytest.param(seen(make_cloud(), DEAD), F.DRAINED, id="it-left"),
        pytest.param(seen(make_cloud(), absent_s=5.0), None, id="it-is-absent-since-a-moment"),
        pytest.param(seen(make_cloud(), is_ray_up=False), None, id="ray-down"),
    ],
)
def test_an_overdue_drain_of_an_idle_node_never_ends_work(
    sight: Sight, expected: Fact | None
) -> None:
    instance = make_instance(state=S.DRAINING, drain_kind="idle", deadline_at_s=NOW_S)

    found = classify(instance, sight, now_s=NOW_S, patience=PATIENCE)

    assert (found[0] if found else None) is expected


def test_nobody_is_late_to_join_a_ray_that_does_not_answer() -> None:
    """Reliability 8: a join cannot be seen while Ray is down, so it is unknown, not missing."""
    instance = make_instance(state=S.BOOTING, deadline_at_s=NOW_S - 5000.0)

    found = classify(instance, seen(make_cloud(), is_ray_up=False), now_s=NOW_S, patience=PATIENCE)

    assert found is None


# --- counting looks -------------------------------------------------------------------------


def test_an_unread_list_counts_for_nothing() -> None:
    instance = make_instance(missing_count=2, missing_since_s=1.0)

    assert count_miss(instance, SILENT, now_s=NOW_S) is instance


def test_misses_are_counted_from_the_first_one() -> None:
    once = count_miss(make_instance(), seen(), now_s=NOW_S)
    twice = count_miss(once, seen(), now_s=NOW_S + 5)

    assert (twice.missing_count, twice.missing_since_s) == (2, NOW_S)


def test_the_first_listing_is_remembered_with_the_clouds_id() -> None:
    instance = make_instance(state=S.REQUESTED, provider_id="")

    listed = count_miss(instance, seen(make_cloud()), now_s=NOW_S)
    again = count_miss(listed, seen(make_cloud()), now_s=NOW_S + 5)

    assert (listed.first_listed_at_s, listed.provider_id) == (NOW_S, "p-i-1")
    assert again is listed


def test_an_id_the_launch_returned_is_not_replaced_by_the_list() -> None:
    instance = make_instance(provider_id="p-first", first_listed_at_s=1.0)

    assert count_miss(instance, seen(make_cloud()), now_s=NOW_S).provider_id == "p-first"


@pytest.mark.parametrize(
    ("first_listed_at_s", "age_s", "is_believable"),
    [
        pytest.param(None, 119.9, False, id="young-and-never-listed"),
        pytest.param(None, 120.0, True, id="old-enough"),
        pytest.param(NOW_S - 1.0, 1.0, True, id="it-was-listed-once"),
    ],
)
def test_not_found_is_believed_once_the_list_could_have_had_it(
    first_listed_at_s: float | None, age_s: float, is_believable: bool
) -> None:
    instance = make_instance(age_s=age_s, first_listed_at_s=first_listed_at_s)

    assert is_absence_believable(instance, now_s=NOW_S, patience=PATIENCE) is is_believable


# --- laws over every state and sight --------------------------------------------------------

_CLOUDS = (
    None,
    *(make_cloud(state, problem=problem) for state in C for problem in ("", "ray start failed")),
)


def sights() -> Iterator[Sight]:
    for cloud, node_, absent_s in product(_CLOUDS, (None, UP, IDLE, LEAVING, DEAD), (0.0, 99.0)):
        yield seen(cloud, node_, absent_s=0.0 if node_ else absent_s)
    for cloud in _CLOUDS:
        yield seen(cloud, is_ray_up=False)
    for node_, absent_s in product((None, UP, IDLE, LEAVING, DEAD), (0.0, 99.0)):
        yield unlisted(node_, absent_s=0.0 if node_ else absent_s)
    yield SILENT


def instances() -> Iterator[Instance]:
    for state, count, provider_id, deadline_at_s in product(
        LIVE, (0, 3), ("", "p-1"), (NOW_S + 1.0, NOW_S)
    ):
        if provider_id or state in (S.REQUESTED, S.LOST):
            yield missed(state, count=count, provider_id=provider_id, deadline_at_s=deadline_at_s)


WORLD = [(instance, sight) for instance in instances() for sight in sights()]


def facts(instance: Instance, sight: Sight) -> tuple[list[Fact], Instance]:
    """Apply facts until none is left, as the loop does."""
    seen_facts: list[Fact] = []
    while found := classify(instance, sight, now_s=NOW_S, patience=PATIENCE):
        assert (instance.state, found[0]) in TRANSITIONS, (instance.state, found)
        instance = advance(instance, found[0], now_s=NOW_S, deadlines=Deadlines(), problem=found[1])
        seen_facts.append(found[0])
        assert len(seen_facts) <= 4, seen_facts
        if instance.is_ended:
            break
    return seen_facts, instance


def test_every_fact_is_legal_and_facts_come_to_an_end() -> None:
    for instance, sight in WORLD:
        facts(instance, sight)


def test_nothing_is_gone_without_the_clouds_word_or_a_proof() -> None:
    for instance, sight in WORLD:
        said, _ = facts(instance, sight)

        is_said = sight.cloud is not None and sight.cloud.state is C.GONE
        may_be_proved = sight.is_listed and not instance.provider_id and sight.cloud is None
        assert F.GONE not in said or is_said or may_be_proved, (instance.state, sight)


def test_an_unread_list_proves_nothing_about_the_cloud() -> None:
    for instance, sight in WORLD:
        if not sight.is_listed:
            said, _ = facts(instance, sight)

            assert not {F.GONE, F.MISSING, F.FOUND_IN_CLOUD} & set(said)


def test_a_node_that_ray_sees_alive_keeps_its_instance() -> None:
    """Reliability 8 and 22: short of the cloud's word and a drain's deadline."""
    for instance, sight in WORLD:
        is_alive = sight.node is not None and sight.node.status is not NodeStatus.DEAD
        is_gone = sight.cloud is not None and sight.cloud.state is C.GONE
        if is_alive and not is_gone and instance.state in (S.BOOTING, S.RUNNING, S.DRAINING):
            said, _ = facts(instance, sight)

            kept = {F.NODE_JOINED, F.DRAIN_STARTED, F.DRAIN_OVERDUE}
            assert set(said) <= kept, (instance.state, sight, said)


def test_nothing_that_works_ends_while_ray_is_down() -> None:
    """Only a node that never joined and itself said that it cannot work is given up."""
    for instance, sight in WORLD:
        is_gone = sight.cloud is not None and sight.cloud.state is C.GONE
        if not sight.is_ray_up and not is_gone and instance.state in (S.BOOTING, S.RUNNING):
            has_failed = sight.cloud is not None and bool(sight.cloud.problem)
            is_boot_failed = has_failed and instance.state is S.BOOTING

            assert facts(instance, sight)[0] == ([F.NODE_FAILED] if is_boot_failed else [])

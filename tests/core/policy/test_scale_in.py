"""Tests of what is brought home: idle nodes, busy ones, and everything when money ends."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.core.models import Caps, Commitment, InstanceState, NodeStatus, Spread
from hybrid.core.policy.decide import decide
from hybrid.core.policy.plan import Drain, Host, Plan, Terminate
from hybrid.core.ports import Mode
from tests.core.make import (
    CLOUD,
    NOW_S,
    ONPREM,
    blind,
    make_demand,
    make_gang,
    make_instance,
    make_node,
    make_offer,
    make_params,
    make_rented,
    make_snapshot,
)

S, N = InstanceState, NodeStatus
PARAMS = make_params(
    idle_after_s=600.0,
    min_life_s=900.0,
    boot_life_ratio=3.0,
    drain_s=1_800.0,
    placement_grace_s=60.0,
    unhealthy_ratio=0.2,
)
COME_HOME = PARAMS.model_copy(update={"busy_drain": "come_home"})


def plan(*rented: Any, nodes: tuple[Any, ...] = (), params: Any = PARAMS, **more: Any) -> Plan:
    """Return the plan for (instance, node) pairs, and more nodes."""
    snapshot = make_snapshot(
        instances=tuple(i for i, _ in rented),
        nodes=(*nodes, *(n for _, n in rented)),
        breach_since_s=None,
        **more,
    )
    return decide(snapshot, params)


def leaving(made: Plan) -> list[str]:
    return [a.instance_id for a in made.actions if isinstance(a, Drain | Terminate)]


def idle(name: str = "i-1", *, idle_s: float = 601.0, **more: Any) -> Any:
    return make_rented(name, idle_s=idle_s, **more)


def busy(name: str = "i-1", *, gpus: float = 4, **more: Any) -> Any:
    """Return a rented node of which `gpus` are used."""
    return make_rented(name, free=4 - gpus, **more)


# --- idle nodes -----------------------------------------------------------------------------

IDLE = {
    "just-before": (idle(idle_s=599.9), False),
    "at": (idle(idle_s=600.0), True),
    "after": (idle(idle_s=600.1), True),
    "young": (idle(age_s=899.9), False),
    "old-enough": (idle(age_s=900.0), True),
    "born-in-the-future": (idle(age_s=-50.0), False),
    "busy": (busy(), False),
    "draining-already": (idle(status=N.DRAINING), False),
    "dead": (idle(status=N.DEAD), False),
    "draining-in-the-ledger": (idle(state=S.DRAINING), False),
    "quarantined": (idle(quarantine="a bug"), False),
}


@pytest.mark.parametrize(("rented", "leaves"), IDLE.values(), ids=IDLE)
def test_an_idle_node_is_asked_to_leave_when_it_may(rented: Any, leaves: bool) -> None:
    assert leaving(plan(rented)) == (["i-1"] if leaves else [])


def test_idle_for_an_unknown_time_is_not_idle() -> None:
    instance, node = idle()

    assert leaving(plan((instance, node.model_copy(update={"idle_s": None})))) == []


def test_an_instance_without_a_node_is_not_drained() -> None:
    assert leaving(plan((make_instance(), make_node("h")))) == []


def test_an_onprem_node_never_leaves_however_idle() -> None:
    made = plan(nodes=(make_node("h", idle_s=1e9),))

    assert made.actions == ()


def test_an_idle_node_is_asked_not_forced_and_told_why() -> None:
    drain = plan(idle(age_s=5_000.0)).actions[0]

    assert isinstance(drain, Drain)
    assert not drain.is_busy
    assert drain.deadline_at_s == NOW_S + 1_800.0
    assert drain.reason.code == "idle"
    assert drain.reason.message == (
        "idle for 601 s, over the limit of 600 s, and no waiting work needs it"
    )
    assert drain.reason.facts == {"idle_s": 601.0, "idle_after_s": 600.0, "age_s": 5_000.0}


@pytest.mark.parametrize(
    ("boot_s", "age_s", "leaves"),
    [
        pytest.param(300.0, 900.0, True, id="three-boots-are-the-minimum-life"),
        pytest.param(400.0, 1_199.9, False, id="just-before-three-boots"),
        pytest.param(400.0, 1_200.0, True, id="at-three-boots"),
        pytest.param(1.0, 899.9, False, id="never-before-the-minimum-life"),
    ],
)
def test_a_node_lives_three_learned_boot_times(boot_s: float, age_s: float, leaves: bool) -> None:
    made = plan(idle(age_s=age_s), boot_s_by_offer={"a": boot_s, "other": 1e6})

    assert leaving(made) == (["i-1"] if leaves else [])


def test_the_living_node_of_an_instance_counts_whatever_else_ray_remembers() -> None:
    instance, node = idle()
    ghost = node.model_copy(update={"node_id": "node-z", "status": N.DEAD})

    assert leaving(plan((instance, node), nodes=(ghost,))) == ["i-1"]
    assert leaving(plan((instance, ghost), nodes=(node,))) == ["i-1"]


def test_a_blind_provider_loses_no_node_and_others_do() -> None:
    mine, other = idle("i-1"), idle("i-2", offer=make_offer("b", provider="other"))

    assert leaving(plan(mine, other, blind=(blind(),))) == ["i-2"]


def test_nothing_idle_leaves_while_scale_in_is_paused() -> None:
    assert leaving(plan(idle(), mode=Mode(is_in_paused=True))) == []
    assert leaving(plan(idle(), mode=Mode(is_out_paused=True))) == ["i-1"]


# --- wanted nodes ---------------------------------------------------------------------------

WANTED = {
    "fits": ({"demands": (make_demand(4),)}, True),
    "fits-with-age-not-known": ({"demands": (make_demand(4, waiting_s=None),)}, True),
    "just-before-the-grace-ends": ({"demands": (make_demand(4, waiting_s=59.9),)}, True),
    "at-the-end-of-the-grace": ({"demands": (make_demand(4, waiting_s=60.0),)}, False),
    "too-large": ({"demands": (make_demand(5),)}, False),
    "for-another-place": ({"demands": (make_demand(1, 1, ONPREM),)}, False),
    "for-this-place": ({"demands": (make_demand(1, 1, ONPREM, CLOUD),)}, True),
    "a-bundle-of-a-gang": ({"gangs": (make_gang(make_demand(4), make_demand(9)),)}, True),
    "a-gang-that-ray-does-not-place": (
        {"gangs": (make_gang(make_demand(4), waiting_s=60.0),)},
        False,
    ),
    "strict-pack-beyond-the-node": (
        {"gangs": (make_gang(make_demand(3), make_demand(3), spread=Spread.STRICT_PACK),)},
        False,
    ),
}


@pytest.mark.parametrize(("work", "is_kept"), WANTED.values(), ids=WANTED)
def test_a_node_that_fresh_work_fits_is_kept(work: dict[str, Any], is_kept: bool) -> None:
    assert leaving(plan(idle(), **work)) == ([] if is_kept else ["i-1"])


def test_work_that_got_no_room_wants_a_node_all_the_same() -> None:
    """Old work that Ray does not place took the room on paper; the new work fits as well."""
    stale = make_demand(4, waiting_s=250.0)
    fresh = make_demand(4, 1, CLOUD)

    assert leaving(plan(idle(), demands=(stale, fresh))) == []


def test_equal_idle_nodes_are_judged_alike_and_others_on_their_own() -> None:
    small = make_offer("s", 2)
    made = plan(idle("i-1"), idle("i-2"), idle("i-3", offer=small), demands=(make_demand(3),))

    assert leaving(made) == ["i-3"]


# --- busy nodes -----------------------------------------------------------------------------


def test_busy_nodes_are_kept_by_default() -> None:
    assert leaving(plan(busy(), nodes=(make_node("h", 8),))) == []


HOME = {
    "room": ((make_node("h", 4),), True),
    "room-exactly": ((make_node("h", 8, free=4),), True),
    "too-little-room": ((make_node("h", 8, free=3),), False),
    "room-only-in-pieces": ((make_node("h", 2), make_node("g", 2)), False),
    "a-draining-host": ((make_node("h", 4, status=N.DRAINING),), False),
    "a-dead-host": ((make_node("h", 4, status=N.DEAD),), False),
    "no-host": ((), False),
}


@pytest.mark.parametrize(("nodes", "comes"), HOME.values(), ids=HOME)
def test_busy_nodes_come_home_when_one_onprem_node_has_room(nodes: Any, comes: bool) -> None:
    assert leaving(plan(busy(), nodes=nodes, params=COME_HOME)) == (["i-1"] if comes else [])


def test_no_more_work_comes_home_than_home_can_hold() -> None:
    made = plan(
        busy("i-1"), busy("i-2"), busy("i-3", gpus=2), nodes=(make_node("h", 6),), params=COME_HOME
    )

    assert leaving(made) == ["i-1", "i-3"]
    both = plan(busy("i-1"), busy("i-2"), nodes=(make_node("h", 8),), params=COME_HOME)
    assert leaving(both) == ["i-1", "i-2"]


def test_work_comes_home_only_with_every_resource_it_uses() -> None:
    offer = make_offer()
    instance, node = make_rented(offer=offer, free=0)
    node = node.model_copy(
        update={
            "total": {"GPU": 4.0, "fpga": 1.0, "object_store_memory": 9.0},
            "available": {"GPU": 0.0, "fpga": 0.0, "object_store_memory": 1.0},
        }
    )

    assert leaving(plan((instance, node), nodes=(make_node("h", 4),), params=COME_HOME)) == []
    home = make_node("h", 4, fpga=1)
    assert leaving(plan((instance, node), nodes=(home,), params=COME_HOME)) == ["i-1"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"demands": (make_demand(99, 1, ONPREM),)}, id="something-waits"),
        pytest.param({"demands": (make_demand(1),)}, id="something-is-being-placed"),
        pytest.param({"mode": Mode(is_in_paused=True)}, id="paused"),
        pytest.param({"blind": (blind(),)}, id="blind"),
    ],
)
def test_busy_nodes_stay_when(more: dict[str, Any]) -> None:
    home = make_node("h", 8)

    assert leaving(plan(busy(), nodes=(home,), params=COME_HOME)) == ["i-1"]
    assert leaving(plan(busy(), nodes=(home,), params=COME_HOME, **more)) == []


def test_a_young_busy_node_stays() -> None:
    home = make_node("h", 8)

    assert leaving(plan(busy(age_s=899.0), nodes=(home,), params=COME_HOME)) == []


def test_an_idle_node_is_not_forced_home() -> None:
    made = plan(idle(idle_s=5.0), nodes=(make_node("h", 8),), params=COME_HOME)

    assert made.actions == ()


def test_a_busy_node_gets_a_deadline_and_a_reason() -> None:
    instance, node = busy(gpus=3)
    unused = {"total": {"GPU": 4.0, "CPU": 8.0}, "available": {"GPU": 1.0, "CPU": 8.0}}
    rented = (instance, node.model_copy(update=unused))

    drain = plan(rented, nodes=(make_node("h", 8),), params=COME_HOME).actions[0]

    assert isinstance(drain, Drain)
    assert drain.is_busy
    assert drain.deadline_at_s == NOW_S + 1_800.0
    assert (drain.reason.code, drain.reason.facts) == ("come_home", {"used_gpu": 3.0})


# --- while much looks unhealthy (reliability 21) --------------------------------------------


def hosts(*names: str) -> tuple[Host, ...]:
    return tuple(Host(name=n, shape={"GPU": 4.0}, labels={"site": "onprem"}) for n in names)


def cluster(alive: int, dead: int) -> dict[str, Any]:
    names = [f"h-{n}" for n in range(alive + dead)]
    return {
        "hosts": hosts(*names),
        "nodes": tuple(
            make_node(n, status=N.IDLE if k < alive else N.DEAD) for k, n in enumerate(names)
        ),
    }


@pytest.mark.parametrize(
    ("alive", "dead", "leaves"),
    [
        pytest.param(7, 2, True, id="at-the-ratio"),  # 2 of 10, the rented one included
        pytest.param(6, 2, False, id="above-the-ratio"),
        pytest.param(0, 1, True, id="one-dead-node-is-no-mass"),
        pytest.param(0, 0, True, id="no-hosts"),
    ],
)
def test_nothing_leaves_while_many_hosts_look_dead(alive: int, dead: int, leaves: bool) -> None:
    assert leaving(plan(idle(), **cluster(alive, dead))) == (["i-1"] if leaves else [])


def test_a_host_that_came_back_is_healthy_however_often_it_died() -> None:
    names = ("h-1", "h-2")
    ghosts = tuple(
        make_node(n, status=N.DEAD).model_copy(update={"node_id": f"old-{n}-{k}"})
        for n in names
        for k in range(5)
    )
    living = tuple(make_node(n) for n in names)

    assert leaving(plan(idle(), hosts=hosts(*names), nodes=(*ghosts, *living))) == ["i-1"]


def test_dead_nodes_of_ended_instances_and_removed_hosts_count_for_nothing() -> None:
    """Ray lists them for hours; they must neither stop scale-in nor hide a real outage."""
    ghosts = (
        *(make_node(f"i-{n}", instance_id=f"i-{n}", status=N.DEAD) for n in range(50, 90)),
        *(make_node(f"old-{n}", status=N.DEAD) for n in range(40)),
    )

    assert leaving(plan(idle(), nodes=ghosts, hosts=hosts("h-1"))) == ["i-1"]
    dead = cluster(1, 3)
    dead["nodes"] = (*dead["nodes"], *ghosts)
    assert leaving(plan(idle(), **dead)) == []


RENTED_TROUBLE = {
    "running-with-a-dead-node": (
        [make_rented(f"d-{n}", status=N.DEAD, joined_at_s=1.0) for n in (1, 2)],
        False,
    ),
    "running-with-no-node-at-all": (
        [(make_instance(f"d-{n}"), make_node(f"h-{n}")) for n in (1, 2)],
        False,
    ),
    "just-given-up": (
        [
            make_rented(f"d-{n}", status=N.DEAD, state=S.TERMINATING, joined_at_s=1.0)
            for n in (1, 2)
        ],
        False,
    ),
    "just-lost": (
        [make_rented(f"d-{n}", status=N.DEAD, state=S.LOST, joined_at_s=1.0) for n in (1, 2)],
        False,
    ),
    "drained-as-asked": (
        [
            make_rented(
                f"d-{n}", status=N.DEAD, state=S.TERMINATING, joined_at_s=1.0, drain_kind="idle"
            )
            for n in (1, 2)
        ],
        True,
    ),
    "never-joined": (
        [make_rented(f"d-{n}", status=N.DEAD, state=S.TERMINATING) for n in (1, 2)],
        True,
    ),
    "only-one": ([make_rented("d-1", status=N.DEAD, state=S.TERMINATING, joined_at_s=1.0)], True),
}


@pytest.mark.parametrize(("dead", "leaves"), RENTED_TROUBLE.values(), ids=RENTED_TROUBLE)
def test_nothing_leaves_while_many_rented_nodes_look_dead(dead: Any, leaves: bool) -> None:
    assert leaving(plan(idle(), *dead)) == (["i-1"] if leaves else [])


# --- when money ends ------------------------------------------------------------------------

MONEY = {
    "day-just-before": (Caps(usd_per_day=10), Commitment(day_usd=6, day_exit_usd=3.99), ""),
    "day-at": (Caps(usd_per_day=10), Commitment(day_usd=6, day_exit_usd=4), "budget_day"),
    "month-at": (
        Caps(usd_per_month=10),
        Commitment(month_usd=6, day_exit_usd=4),
        "budget_month",
    ),
    "day-before-month": (
        Caps(usd_per_day=1, usd_per_month=1),
        Commitment(day_usd=2, month_usd=2),
        "budget_day",
    ),
    "other-caps-force-nobody-out": (
        Caps(node_count=0, gpu_count=0, usd_per_hour=0),
        Commitment(gpu_count=9, usd_per_hour=9),
        "",
    ),
}


@pytest.mark.parametrize(("caps", "used", "code"), MONEY.values(), ids=MONEY)
def test_everything_leaves_when_the_money_that_is_left_just_pays_the_way_home(
    caps: Caps, used: Commitment, code: str
) -> None:
    used = used.model_copy(update={"node_count": 1})
    made = plan(busy(age_s=1.0), caps=caps, commitment=used)

    assert [a.reason.code for a in made.actions] == ([code] if code else [])


BROKE: dict[str, Any] = {
    "caps": Caps(usd_per_day=10),
    "commitment": Commitment(node_count=5, day_usd=10),
}


@pytest.mark.parametrize(
    ("deadline_s", "is_shortened"), [(None, False), (1_800.0, False), (1_801.0, True)]
)
@pytest.mark.parametrize("sources", [(), (blind("ray"),)], ids=["ray-up", "ray-silent"])
def test_a_drain_that_lasts_longer_than_the_money_is_made_shorter(
    deadline_s: float | None, is_shortened: bool, sources: Any
) -> None:
    deadline_at_s = None if deadline_s is None else NOW_S + deadline_s
    leaver = make_instance(state=S.DRAINING, deadline_at_s=deadline_at_s)

    made = plan((leaver, make_node("h")), blind=sources, **BROKE)

    assert leaving(made) == (["i-1"] if is_shortened else [])
    for drain in made.actions:
        assert isinstance(drain, Drain)
        assert drain.is_busy
        assert drain.deadline_at_s == NOW_S + 1_800.0


def test_a_boot_that_nobody_saw_yet_counts_as_long_as_the_offer_says() -> None:
    offer = make_offer().model_copy(update={"boot_s": 400.0})

    assert leaving(plan(idle(offer=offer, age_s=1_199.0))) == []
    assert leaving(plan(idle(offer=offer, age_s=1_200.0))) == ["i-1"]


def test_a_spent_budget_with_nothing_rented_does_nothing() -> None:
    made = plan(nodes=(make_node("h"),), caps=Caps(usd_per_day=1), commitment=Commitment(day_usd=9))

    assert made.actions == ()


def test_money_ends_what_boots_and_drains_what_runs_and_leaves_the_rest_to_its_course() -> None:
    rented = [
        (make_instance(f"i-{state}", state), make_node(f"h-{state}"))
        for state in S
        if state not in (S.TERMINATED, S.FAILED)
    ]
    rented.append((make_instance("i-bad", S.RUNNING, quarantine="a bug"), make_node("h-bad")))

    made = plan(*rented, **BROKE)

    assert [(a.kind, getattr(a, "instance_id", "")) for a in made.actions] == [
        ("terminate", "i-booting"),
        ("drain", "i-running"),
    ]
    drain = made.actions[1]
    assert isinstance(drain, Drain)
    assert drain.is_busy
    assert drain.deadline_at_s == NOW_S + 1_800.0


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"mode": Mode(is_in_paused=True)}, id="paused"),
        pytest.param({"blind": (blind(),)}, id="provider-blind"),
        pytest.param({"demands": (make_demand(4),)}, id="wanted"),
        pytest.param(cluster(0, 5), id="much-looks-unhealthy"),
    ],
)
def test_a_hard_cap_overrides_everything(more: dict[str, Any]) -> None:
    assert leaving(plan(idle(age_s=1.0, idle_s=0.0), **BROKE, **more)) == ["i-1"]


def test_nothing_is_launched_while_everything_must_leave() -> None:
    demand = make_demand(4, 9, waiting_s=9_999.0)

    made = plan(busy(), demands=(demand,), offers=(make_offer(usd=0.01),), **BROKE)

    assert {a.kind for a in made.actions} == {"drain"}


@pytest.mark.parametrize(
    ("count", "words"), [(1, "1 rented node home"), (3, "3 rented nodes home")]
)
def test_the_reason_of_a_spent_budget_has_its_numbers(count: int, words: str) -> None:
    used = Commitment(node_count=count, day_usd=7.5, day_exit_usd=2.5)
    reason = plan(busy(), caps=Caps(usd_per_day=10), commitment=used).actions[0].reason

    assert reason.message == (
        f"$7.50 of $10.00 for this day are spent, and $2.50 are kept to bring {words}"
    )
    assert reason.facts == {"spent_usd": 7.5, "exit_usd": 2.5, "cap_usd": 10.0}

"""Tests of every reason code: a plan that gives it, its words, and its line in docs/reasons.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import Caps, Commitment, Demand, InstanceState, Spread
from hybrid.core.policy.decide import decide
from hybrid.core.policy.jobs.rent import JOB_WAITS
from hybrid.core.policy.plan import Finding, Host, Plan, Source
from hybrid.core.ports import Mode
from tests.core.make import (
    CLOUD,
    NOW_S,
    ONPREM,
    blind,
    make_demand,
    make_failure,
    make_gang,
    make_instance,
    make_node,
    make_offer,
    make_params,
    make_rented,
    make_snapshot,
    rule,
)

ROOT = Path(__file__).parents[3]
S = InstanceState
PARAMS = make_params(
    max_wait_s=300.0, stabilisation_s=30.0, launches_per_tick=2, first_wave_count=4
)
OFFER = make_offer()
LATE_S = 400.0


def late(gpus: float = 1, count: int = 1, *selectors: Any, **more: Any) -> Any:
    return make_demand(gpus, count, *selectors, waiting_s=LATE_S, **more)


def late_gang(*bundles: Any, **more: Any) -> Any:
    return make_gang(*bundles, waiting_s=LATE_S, **more)


def plan(*, params: Any = PARAMS, **snapshot: Any) -> Plan:
    return decide(make_snapshot(**{"offers": (OFFER,), **snapshot}), params)


# --- findings -------------------------------------------------------------------------------

FINDINGS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "capacity_free": (
        {"demands": (late(),), "nodes": (make_node(),)},
        "free nodes will take it; Ray is placing it",
        False,
    ),
    "capacity_coming": (
        {"demands": (late(),), "instances": (make_instance(state=S.BOOTING),)},
        "nodes that are joining will take it",
        False,
    ),
    "launching": ({"demands": (late(),)}, "instances are being launched for it", False),
    "within_limit": (
        {"demands": (make_demand(waiting_s=12.0),)},
        "waited 12 s of the 300 s that home gets first",
        False,
    ),
    "stabilising": (
        {"demands": (late(),), "breach_since_s": NOW_S - 7},
        "the queue limit has been broken for 7 s; money is spent after 30 s",
        False,
    ),
    "ramp": (
        {"demands": (late(4, 3),)},
        "this plan launches as many as one tick may; the next one goes on",
        False,
    ),
    "paused": (
        {"demands": (late(),), "mode": Mode(is_out_paused=True, owner="ann")},
        "launches are paused by ann; `hybrid resume out`",
        False,
    ),
    "closing": (
        {"demands": (late(),), "mode": Mode(is_closing=True)},
        "the cluster is going down",
        False,
    ),
    "sold_out": (
        {"demands": (late(),), "offers": (make_offer(stock=0),)},
        "a is sold out",
        False,
    ),
    "max_nodes": (
        {
            "demands": (late(),),
            "offers": (make_offer(max_count=1),),
            "instances": (make_instance(state=S.LOST),),
        },
        "max_nodes of a is 1, with 1 rented",
        False,
    ),
    "backed_off": (
        {"demands": (late(),), "failures": (make_failure(until_s=NOW_S + 60),)},
        "a failed (full); tried again in 60 s",
        False,
    ),
    "probing": (
        {"demands": (late(4, 2),), "failures": (make_failure(until_s=NOW_S),)},
        "a failed before, so one launch tries it first",
        False,
    ),
    "first_wave": (
        {
            "demands": (late(4, 5),),
            "instances": tuple(make_instance(f"i-{n}", S.BOOTING) for n in range(4)),
        },
        "no node of a has joined yet, so at most 4 come at once (burst.first_wave), with 4 on the "
        "way",
        False,
    ),
    "provider_blind": (
        {"demands": (late(),), "blind": (blind(),)},
        "sim does not answer: no route to host",
        False,
    ),
    "cap_nodes": (
        {
            "demands": (late(),),
            "caps": Caps(node_count=2),
            "commitment": Commitment(node_count=2),
        },
        "budget.nodes is 2, 2 of it is taken or promised, and one more a needs 1",
        False,
    ),
    "cap_gpus": (
        {"demands": (late(),), "caps": Caps(gpu_count=3)},
        "budget.gpus is 3, 0 of it is taken or promised, and one more a needs 4",
        True,
    ),
    "cap_usd_per_hour": (
        {
            "demands": (late(),),
            "caps": Caps(usd_per_hour=5),
            "commitment": Commitment(usd_per_hour=1.5),
        },
        "budget.usd_per_hour is 5, 1.5 of it is taken or promised, and one more a needs 4",
        False,
    ),
    "cap_usd_per_day": (
        {
            "demands": (late(),),
            "caps": Caps(usd_per_day=9),
            "commitment": Commitment(day_usd=8),
        },
        "budget.usd_per_day is 9, 8 of it is taken or promised, and one more a needs 3.1333",
        False,
    ),
    "cap_usd_per_month": (
        {"demands": (late(),), "caps": Caps(usd_per_month=1)},
        "budget.usd_per_month is 1, 0 of it is taken or promised, and one more a needs 3.1333",
        True,
    ),
    "gang_too_large": (
        {"gangs": (late_gang(*[late(4)] * 3),)},
        "the gang needs 3 of a at once, and one tick launches at most 2; raise "
        "burst.launches_per_tick to 3",
        True,
    ),
    "never_fits": (
        {"demands": (late(64, 1, ONPREM, CLOUD),), "nodes": (make_node(),)},
        "no node and no offer can hold 64 GPU, the largest of all has 4 GPU: make the request "
        "smaller, or add a host or a cloud pool that can hold it",
        True,
    ),
    "gang_never_fits": (
        {"gangs": (late_gang(late(4, 1, ONPREM), late(4, 1, CLOUD)),), "nodes": (make_node(),)},
        "the nodes that are there could not hold all of its bundles at once even if they were "
        "free, and no single offer holds each of them: make the gang smaller, or add hosts or a "
        "cloud pool that can hold it",
        True,
    ),
    "offers_unknown": (
        {
            "demands": (late(64, 1, ONPREM, CLOUD),),
            "unread": (Source(name="provider:b", is_up=False, problem="no answer"),),
        },
        "what provider:b offers is not known: no answer",
        False,
    ),
    "onprem_busy": (
        {"demands": (late(4, 1, ONPREM),), "nodes": (make_node(free=0),)},
        "only on-prem nodes may run it (site=onprem), and they are busy",
        False,
    ),
}


@pytest.mark.parametrize("code", FINDINGS)
def test_each_finding_says_what_it_should(code: str) -> None:
    snapshot, message, is_for_ever = FINDINGS[code]

    found = [f for f in plan(**snapshot).findings if f.reason.code == code]

    assert [(f.reason.message, f.is_for_ever) for f in found] == [(message, is_for_ever)]


# --- findings, further ----------------------------------------------------------------------


def only(made: Plan) -> Finding:
    assert len(made.findings) == 1, made.findings
    return made.findings[0]


@pytest.mark.parametrize("work", [late(64, 1, ONPREM), late(4, 1, ONPREM)])
def test_an_unread_cloud_is_no_hope_for_work_that_may_not_go_there(work: Demand) -> None:
    unread = (Source(name="provider:b", is_up=False),)
    finding = only(plan(demands=(work,), nodes=(make_node(free=0),), unread=unread))

    assert finding.reason.code in ("never_fits", "onprem_busy")


def test_work_that_only_its_labels_rule_out_is_told_to_correct_them() -> None:
    h100 = (*CLOUD, rule("accelerator", "H100"))
    finding = only(plan(demands=(late(4, 1, h100),), nodes=(make_node(),)))

    assert finding.is_for_ever
    assert "smaller" not in finding.reason.message
    assert finding.reason.message == (
        "no node and no offer that can hold 4 GPU has the labels that are asked for "
        "(site=cloud,accelerator=H100): correct the labels, or add a host or a cloud pool that "
        "has them"
    )


def test_work_that_asks_for_what_nothing_has_is_told_what_that_is() -> None:
    finding = only(plan(demands=(late(1, 1, CLOUD, TPU=1.0),), nodes=(make_node(),)))

    assert finding.reason.message.startswith("no node and no offer has any TPU: ask for something")


def test_work_that_differs_in_its_places_only_can_be_told_apart() -> None:
    work = (late(1, 3, CLOUD), late(1, 4))

    found = plan(demands=work, mode=Mode(is_out_paused=True)).findings

    assert {(f.count, f.where) for f in found} == {(3, "site=cloud"), (4, "anywhere")}


def test_a_finding_tells_shape_count_and_age() -> None:
    finding = only(plan(demands=(make_demand(2, 7, ONPREM, waiting_s=5.0, CPU=1),)))

    assert (finding.shape, finding.count, finding.gang_id, finding.waiting_s) == (
        {"GPU": 2.0, "CPU": 1.0},
        7,
        "",
        5.0,
    )


def test_a_finding_of_a_gang_is_one_with_the_sum_of_its_bundles() -> None:
    gang = make_gang(make_demand(2), make_demand(3), gang_id="g-7", waiting_s=9.0)
    finding = only(plan(gangs=(gang,)))

    assert (finding.shape, finding.count, finding.gang_id, finding.waiting_s) == (
        {"GPU": 5.0},
        1,
        "g-7",
        9.0,
    )


def test_one_kind_of_work_may_be_served_in_four_ways_at_once() -> None:
    made = plan(
        demands=(late(1, 20),),
        nodes=(make_node("h", 2),),
        instances=(make_instance(state=S.BOOTING),),
    )

    assert [(f.count, f.reason.code) for f in made.findings] == [
        (6, "capacity_coming"),
        (8, "launching"),
        (6, "ramp"),
    ]
    assert made.findings[0].reason.message == (
        "free nodes will take 2 of it, and nodes that are joining 4"
    )


def test_an_age_that_is_not_known_is_said_to_be_so() -> None:
    finding = only(plan(demands=(make_demand(waiting_s=None),)))

    assert finding.reason.message == ("waited an unknown time of the 300 s that home gets first")


def test_a_pause_without_an_owner_has_words_too() -> None:
    finding = only(plan(demands=(late(),), mode=Mode(is_out_paused=True)))

    assert finding.reason.message == "launches are paused by an operator; `hybrid resume out`"


def test_the_refusal_nearest_to_a_launch_is_told() -> None:
    offers = (make_offer("b", stock=0), make_offer("a", max_count=0))

    finding = only(plan(demands=(late(),), offers=offers))

    assert finding.reason.code == "max_nodes"


def test_work_that_no_offer_holds_but_busy_nodes_do_is_told_apart_from_onprem_work() -> None:
    made = plan(demands=(late(8),), nodes=(make_node("h", 8, free=1),))

    assert only(made).reason.message == (
        "no offer can hold it (anywhere), and the nodes that can are busy"
    )


FOR_EVER = {
    "no-node-no-offer": ({"demands": (late(9),)}, True),
    "a-label-nobody-has": ({"demands": (late(1, 1, (rule("zone", "x"),)),)}, True),
    "a-host-that-is-down-could": (
        {"demands": (late(9),), "hosts": (Host(name="h", shape={"GPU": 9.0}),)},
        False,
    ),
    "a-busy-node-could": ({"demands": (late(9),), "nodes": (make_node("h", 9, free=0),)}, False),
    "an-offer-of-max-nodes-0": (
        {"demands": (late(),), "offers": (make_offer(max_count=0),)},
        True,
    ),
    "max-nodes-0-but-home-could": (
        {
            "demands": (late(),),
            "offers": (make_offer(max_count=0),),
            "nodes": (make_node(free=0),),
        },
        False,
    ),
    "sold-out-is-not-for-ever": ({"demands": (late(),), "offers": (make_offer(stock=0),)}, False),
    "one-of-two-offers-could": (
        {"demands": (late(),), "offers": (make_offer(max_count=0), make_offer("b", stock=0))},
        False,
    ),
    "a-gang-wider-than-its-pool": (
        {"gangs": (late_gang(late(4), late(4)),), "offers": (make_offer(max_count=1),)},
        True,
    ),
    "a-gang-wider-than-the-cap": (
        {"gangs": (late_gang(late(4), late(4)),), "caps": Caps(gpu_count=7)},
        True,
    ),
    "a-gang-of-just-what-one-tick-launches": (
        {"gangs": (late_gang(late(4), late(4)),), "offers": (make_offer(stock=0),)},
        False,
    ),
    "a-gang-that-another-pool-could-hold": (
        {
            "gangs": (late_gang(late(4), late(4)),),
            "offers": (make_offer(max_count=1), make_offer("b", 8, stock=0)),
        },
        False,
    ),
    "a-gang-that-home-could-hold": (
        {
            "gangs": (late_gang(late(4), late(4)),),
            "offers": (make_offer(max_count=1),),
            "nodes": (make_node("h", 4, free=0), make_node("g", 4, free=0)),
        },
        False,
    ),
    "an-onprem-gang-wider-than-home": (
        {"gangs": (late_gang(*[late(4, 1, ONPREM)] * 2),), "nodes": (make_node(free=0),)},
        True,
    ),
    "an-onprem-gang-that-busy-nodes-could-hold": (
        {
            "gangs": (late_gang(*[late(4, 1, ONPREM)] * 2),),
            "nodes": (make_node("h", 4, free=0), make_node("g", 4, free=0)),
        },
        False,
    ),
    "an-onprem-gang-spread-over-too-few-nodes": (
        {
            "gangs": (late_gang(*[late(1, 1, ONPREM)] * 2, spread=Spread.STRICT_SPREAD),),
            "nodes": (make_node(free=0),),
        },
        True,
    ),
}


@pytest.mark.parametrize(("snapshot", "expected"), FOR_EVER.values(), ids=FOR_EVER)
def test_for_ever_means_that_no_node_or_offer_could_hold_it(
    snapshot: dict[str, Any], expected: bool
) -> None:
    assert only(plan(**snapshot)).is_for_ever is expected


# --- the plan in one sentence ---------------------------------------------------------------

IDLE = make_rented(idle_s=9_999.0)
SUMMARIES = {
    "one-launch": (
        {"demands": (late(),)},
        "Renting 1 node ($4.00/h): 1 request for 1 GPU (anywhere) waited 400 s, over the limit "
        "of 300 s; one a takes 1, at $4.00/h each.",
    ),
    "two-launches": (
        {"demands": (late(4, 2),)},
        "Renting 2 nodes ($8.00/h): 2 requests for 4 GPU (anywhere) waited 400 s, over the limit "
        "of 300 s; one a takes 1, at $4.00/h each.",
    ),
    "a-drain": (
        {"instances": (IDLE[0],), "nodes": (IDLE[1],)},
        "Draining 1 rented node: idle for 9999 s, over the limit of 600 s, and no waiting work "
        "needs it.",
    ),
    "an-end": (
        {
            "instances": (make_instance(state=S.BOOTING),),
            "caps": Caps(usd_per_day=1),
            "commitment": Commitment(node_count=1, day_usd=2),
        },
        "Ending 1 rented node: $2.00 of $1.00 for this day are spent, and $0.00 are kept to "
        "bring 1 rented node home.",
    ),
    "nothing": ({}, "Everything runs at home; nothing waits."),
    "rented-and-nothing-waits": (
        {"instances": (make_instance(state=S.BOOTING),)},
        "1 node rented; nothing waits.",
    ),
    "placing": (
        {"demands": (late(1, 2),), "nodes": (make_node(),)},
        "2 requests waiting, and nodes with room for all of it.",
    ),
    "sold-out": (
        {"demands": (late(1, 5),), "offers": (make_offer(stock=0),)},
        "5 requests waiting: a is sold out.",
    ),
    "the-reason-of-most": (
        {
            "demands": (make_demand(1, 3), late(1, 2, ONPREM)),
            "nodes": (make_node(free=0),),
            "instances": (make_instance(state=S.BOOTING, deadline_at_s=NOW_S),),
        },
        "1 node rented; 5 requests waiting: waited 0 s of the 300 s that home gets first.",
    ),
    "lost-is-not-rented": (
        {"instances": (make_instance(state=S.LOST),)},
        "Everything runs at home; nothing waits.",
    ),
    "ray-silent": (
        {"demands": (late(),), "blind": (blind("ray"),)},
        "Ray does not answer, so nothing is decided: no route to host",
    ),
}


@pytest.mark.parametrize(("snapshot", "expected"), SUMMARIES.values(), ids=SUMMARIES)
def test_the_summary_is_true_and_one_sentence(snapshot: dict[str, Any], expected: str) -> None:
    assert plan(**snapshot).summary == expected


# --- the page and the program agree ---------------------------------------------------------


def documented() -> dict[str, list[str]]:
    """Return codes by section of docs/reasons.md."""
    sections: dict[str, list[str]] = {}
    section: list[str] = []
    for line in (ROOT / "docs" / "reasons.md").read_text().splitlines():
        if line.startswith("## "):
            section = sections.setdefault(line.removeprefix("## "), [])
        elif match := re.match(r"\| `([a-z_]+)` \| [^|]+ \| [^|]+ \|$", line):
            section.append(match[1])
    return sections


LAUNCH, START, STOP, LEAVE, WAIT = (
    "Why an instance is launched",
    "Why a job starts",
    "Why a job is stopped or moved",
    "Why a rented node leaves",
    "Why work waits",
)


def written(folder: str) -> Iterator[tuple[str, bool]]:
    """Yield every reason code in the source, and whether it is only the start of one."""
    for path in sorted((ROOT / "hybrid" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for value in _code_values(node):
                for part in ast.walk(value):
                    if isinstance(part, ast.JoinedStr) and isinstance(part.values[0], ast.Constant):
                        yield str(part.values[0].value), True
                if not isinstance(value, ast.JoinedStr):
                    for part in ast.walk(value):
                        if isinstance(part, ast.Constant) and part.value:
                            yield str(part.value), False


NAMED: dict[str, ast.expr] = {"JOB_WAITS": ast.Constant(JOB_WAITS)}


def _code_values(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "Refusal":
            yield node.args[0]
        if node.func.id == "Reason":
            codes = (k.value for k in node.keywords if k.arg == "code")
            yield from (NAMED.get(c.id, c) if isinstance(c, ast.Name) else c for c in codes)
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == "code":
            yield node.value
        if isinstance(target, ast.Name) and target.id == "_START_WORDS":
            assert isinstance(node.value, ast.Dict)
            yield from (key for key in node.value.keys if key is not None)
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            first = target.elts[0]
            if isinstance(first, ast.Name) and first.id == "code":
                yield node.value.elts[0]


def test_every_code_of_the_program_is_on_the_page_and_no_other() -> None:
    on_page = {code for codes in documented().values() for code in codes}
    found = [*written("core/policy"), *written("control")]
    whole = {code for code, is_start in found if not is_start}
    starts = tuple(code for code, is_start in found if is_start)

    assert whole <= on_page, "write these on docs/reasons.md"
    assert {c for c in on_page - whole if not c.startswith(starts)} == set(), "nobody gives these"


def test_every_finding_on_the_page_has_a_plan_that_gives_it() -> None:
    assert set(documented()[WAIT]) == set(FINDINGS)


def test_the_page_lists_each_code_once() -> None:
    codes = [code for section in documented().values() for code in section]

    assert len(codes) == len(set(codes))
    assert list(documented()) == [LAUNCH, START, STOP, LEAVE, WAIT]
    assert documented()[LAUNCH] == [
        "queue_wait",
        "queue_gpus",
        "slo_breach",
        "adopted",
        "job_waits",
    ]
    assert documented()[START] == [
        "free_at_home",
        "packed",
        "given_way",
        "made_room",
        "free_rented",
    ]
    assert documented()[STOP] == ["slack", "preempted", "lent", "best_effort", "pack", "exchange"]
    assert set(documented()[LEAVE]) == {
        "idle",
        "not_needed",
        "come_home",
        "budget_day",
        "budget_month",
        "operator",
        "interrupted",
        "down",
    }

"""Priority, best-effort work, patience, fair shares, and gangs that small jobs do not starve."""

from __future__ import annotations

from typing import Any

from hybrid.core.models import Demand, LabelConstraint
from hybrid.core.models.work import JobView
from hybrid.core.policy.plan import Suspend
from tests.core.policy.jobs.make import actions, cluster, job, plan

LONG_S = 4 * 3_600.0
FULL: dict[str, Any] = {"ran_s": 600.0}
HOME = ((LabelConstraint(key="site", values=("onprem",)),),)


def filler(name: str, gpus: int = 1, **changes: Any) -> JobView:
    return job(name, gpus, is_filler=True, max_wait_s=1e9, **changes)


def test_a_higher_priority_goes_first_whatever_came_before() -> None:
    old, new = job("old", 8, waited_s=900), job("new", 8, waited_s=1, priority=51)
    assert plan(cluster(old, new), suspend_after_s=1e9, rent_after_s=1e9) == ["start new h0"]


def test_of_equal_priority_the_first_goes_first() -> None:
    first, second = job("b", 8, waited_s=20), job("a", 8, waited_s=10)
    assert plan(cluster(first, second)) == ["start b h0"]


def test_a_retry_is_judged_by_its_first_submission() -> None:
    again = job("again", 8, waited_s=600, saves=False)
    new = job("new", 8, waited_s=5, saves=False)
    assert plan(cluster(again, new), rent_after_s=1e9)[0] == "start again h0"


def test_more_urgent_work_takes_the_place_of_work_that_saves() -> None:
    low, high = job("low", 8, on="h0", priority=10, **FULL), job("high", 4, priority=90)
    [stop, start] = actions(cluster(low, high))
    assert isinstance(stop, Suspend)
    assert (stop.job_id, stop.reason.code) == ("low", "preempted")
    assert stop.reason.facts["for_priority"] == 90
    assert start.kind == "start"
    assert start.job_id == "high"


def test_work_that_cannot_save_is_never_preempted() -> None:
    low = job("low", 8, on="h0", priority=10, saves=False, **FULL)
    assert plan(cluster(low, job("high", 4, priority=90))) == []


def test_equal_priority_preempts_nobody() -> None:
    assert plan(cluster(job("one", 8, on="h0", **FULL), job("two", 8))) == []


def test_a_job_stopped_too_often_is_left_alone() -> None:
    low = job("low", 8, on="h0", priority=10, interruption_count=2, **FULL)
    assert plan(cluster(low, job("high", 4, priority=90))) == []


def test_no_more_is_preempted_than_is_needed() -> None:
    lows = [job(f"low{n}", 2, on="h0", priority=10, **FULL) for n in range(4)]
    made = plan(cluster(*lows, job("high", 3, priority=90)))
    assert made == ["suspend low0", "suspend low1", "start high h0"]


def test_best_effort_work_fills_what_is_free_and_nothing_is_rented_for_it() -> None:
    waiting = [filler("f0", 8, waited_s=1e6), filler("f1", 8, waited_s=1e6)]
    assert plan(cluster(*waiting)) == ["start f0 h0"]


def test_best_effort_work_leaves_at_once_even_if_it_cannot_save() -> None:
    running = filler("f", 8, on="h0", saves=False, interruption_count=9, **FULL)
    [stop, start] = actions(cluster(running, job("j", 1)))
    assert isinstance(stop, Suspend)
    assert stop.reason.code == "best_effort"
    assert start.kind == "start"


def test_best_effort_work_comes_after_all_other_work() -> None:
    assert plan(cluster(filler("a", 8, waited_s=9_000, priority=100), job("b", 8, priority=0))) == [
        "start b h0"
    ]


def test_best_effort_work_gives_way_before_anybody_else() -> None:
    running = [filler("f", 4, on="h0", **FULL), job("low", 4, on="h0", priority=1, **FULL)]
    assert plan(cluster(*running, job("high", 4, priority=9))) == ["suspend f", "start high h0"]


def test_best_effort_work_does_not_give_way_to_its_like() -> None:
    assert plan(cluster(filler("f", 8, on="h0", **FULL), filler("g", 8, priority=99))) == []


def test_a_gang_takes_whole_nodes_from_lower_work() -> None:
    lows = [job(f"low{n}", 8, on=f"h{n}", priority=1, **FULL) for n in range(3)]
    made = plan(cluster(*lows, job("gang", 16, priority=9), home=3))
    assert made == ["suspend low0", "suspend low1", "start gang h0+h1"]


def test_a_gang_that_can_only_have_half_takes_nothing() -> None:
    low = job("low", 8, on="h0", priority=1, **FULL)
    firm = job("firm", 8, on="h1", priority=1, saves=False, **FULL)
    assert plan(cluster(low, firm, job("gang", 16, priority=9), home=2), rent_after_s=1e9) == []


def test_who_may_wait_for_hours_is_not_rented_for_before_the_last_moment() -> None:
    running = job("r", 8, on="h0", saves=False, **FULL)
    patient = job("p", 8, waited_s=3_600, max_wait_s=LONG_S)
    assert plan(cluster(running, patient)) == []
    late = job("p", 8, waited_s=LONG_S, max_wait_s=LONG_S)
    assert plan(cluster(running, late)) == ["launch x8"]


def test_small_jobs_do_not_starve_a_late_gang_where_nothing_can_be_rented() -> None:
    gang = job("gang", 16, waited_s=7_000)
    small = [job("s0", 1, waited_s=10), job("s1", 4, waited_s=10)]
    running = [job("r", 4, on="h1", saves=False, **FULL), job("q", 8, on="h2", **FULL)]
    made = plan(cluster(gang, *small, *running, home=3, offers=()), suspend_after_s=1e9)
    assert made == [], "h0 and h1 are kept for the gang"
    made = plan(
        cluster(job("gang", 16, waited_s=100), *small, *running, home=3, offers=()),
        suspend_after_s=1e9,
    )
    assert made == ["start s0 h1", "start s1 h0"], "it is not late yet"


def test_work_for_home_alone_keeps_its_nodes_though_clouds_are_there() -> None:
    unit = Demand(shape={"GPU": 8.0}, count=1, selectors=HOME)
    gang = job("big", 8, waited_s=7_000, units=(unit,), saves=False)
    running = job("r", 4, on="h0", saves=False, **FULL)
    snapshot = cluster(gang, job("s", 1, waited_s=1), running)
    nodes = [n.model_copy(update={"labels": {"site": "onprem"}}) for n in snapshot.nodes]
    assert plan(snapshot.model_copy(update={"nodes": tuple(nodes)})) == []


def test_an_impossible_job_keeps_nothing() -> None:
    running = job("r", 4, on="h0", saves=False, **FULL)
    never = job("never", 64, waited_s=7_000)
    assert plan(cluster(never, job("s", 1), running, offers=())) == ["start s h0"]


def test_fair_shares_let_a_user_with_less_go_first() -> None:
    running = job("r", 4, on="h0", user="anna", saves=False, **FULL)
    waiting = [
        job("a", 2, waited_s=90, user="anna"),
        job("b", 2, waited_s=9, user="bo"),
        job("c", 2, waited_s=8, user="bo"),
    ]
    without = plan(cluster(running, *waiting), rent_after_s=1e9)
    assert without == ["start a h0", "start b h0"]
    fair = plan(cluster(running, *waiting), rent_after_s=1e9, fair_share=True)
    assert fair == ["start b h0", "start c h0"]


def test_a_gang_of_a_lower_priority_gives_way_as_a_whole() -> None:
    gang = job("gang", 16, on=("h0", "h1"), priority=1, **FULL)
    made = plan(cluster(gang, job("high", 8, priority=9), job("next", 8, priority=8), home=2))
    assert made == ["suspend gang", "start high h0", "start next h1"]


OUT: dict[str, Any] = {"on": "r0", "ran_s": 7_200.0}
"""In the cloud for so long that it wants to come home."""


def test_a_suspended_job_makes_way_for_rented_work_but_not_for_less_urgent_work() -> None:
    out = job("out", 8, **OUT)
    stopped = job("stopped", 4, waited_s=60, priority=90, is_started=True)
    less = job("less", 4, waited_s=5, priority=10)
    rented = (("r0", 8),)
    assert plan(cluster(out, stopped, rented=rented)) == ["move out home h0"]
    assert plan(cluster(out, stopped, less, rented=rented))[0] == "start stopped h0"


def test_a_retry_that_saves_nothing_is_held_back_for_nobody() -> None:
    out, again = job("out", 8, **OUT), job("again", 8, waited_s=60, saves=False, is_started=True)
    assert plan(cluster(out, again, rented=(("r0", 8),)))[0] == "start again h0"


def test_best_effort_work_leaves_the_place_to_rented_work() -> None:
    out = job("out", 8, **OUT)
    assert plan(cluster(out, filler("f", 8), rented=(("r0", 8),))) == ["move out home h0"]


def test_slack_of_more_urgent_work_is_not_spent_on_less_urgent_work() -> None:
    rich = job("rich", 8, on="h0", priority=50, ran_s=7_200.0, max_wait_s=14_400.0)
    new = job("new", 8, waited_s=5)
    assert plan(cluster(rich, new)) == ["suspend rich", "start new h0"]
    assert "suspend rich" not in plan(cluster(rich, new.model_copy(update={"priority": 49})))


def test_a_gang_that_has_lost_a_node_is_planned_for_no_more() -> None:
    """Its end is seen soon; until then it holds what it has."""
    gang = job("gang", 16, on=("h0", "gone"), priority=1, **FULL)
    assert plan(cluster(gang, job("high", 8, priority=9), home=1), rent_after_s=1e9) == []

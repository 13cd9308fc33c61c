"""Each means of the policy for jobs on a cluster small enough to do by hand."""

from __future__ import annotations

from typing import Any

from hybrid.core.models import Caps, Commitment
from hybrid.core.models.work import JobView
from hybrid.core.policy.plan import Move, Start, Starts, Suspend
from hybrid.core.ports import Mode
from tests.core.make import NOW_S, ONPREM
from tests.core.policy.jobs.make import (
    BOOT_S,
    MAX_WAIT_S,
    SIZES,
    TRIP_S,
    actions,
    by_size,
    cluster,
    job,
    plan,
)

GUARD_S = 60.0
RESERVE_S = BOOT_S + GUARD_S
LAST_S = MAX_WAIT_S - RESERVE_S - TRIP_S
"""How long a new job with checkpoints may wait until renting for it is urgent."""
HOUR_S = 3_600.0


# --- starting -------------------------------------------------------------------------------


def test_waiting_jobs_start_at_home_on_the_fullest_node_that_holds_them() -> None:
    running = job("r", 6, on="h1", ran_s=60)
    assert plan(cluster(job("a", 2), running, home=2)) == ["start a h1"]


def test_a_job_without_checkpoints_goes_first_and_then_the_one_that_is_late_soonest() -> None:
    jobs = (job("young", 4), job("old", 4, waited_s=30), job("pinned", 4, saves=False))
    assert plan(cluster(*jobs)) == ["start pinned h0", "start old h0"]


def test_a_gang_gets_whole_nodes_or_nothing() -> None:
    gang = job("g", 20)
    assert plan(cluster(gang, home=3)) == ["start g h0+h1+h2"]
    assert plan(cluster(gang, home=2)) == []


def test_smaller_work_fills_what_a_gang_cannot_use() -> None:
    assert plan(cluster(job("g", 16, waited_s=10), job("s", 2), home=1)) == ["start s h0"]


def test_a_free_rented_node_takes_only_work_that_may_not_wait() -> None:
    full = job("r", 8, on="h0", ran_s=60)
    fresh = cluster(job("a", 2, waited_s=20), full, rented=[("i", 2)])
    urgent = cluster(job("a", 2, waited_s=LAST_S), full, rented=[("i", 2)])
    assert plan(fresh) == []
    assert plan(urgent) == ["start a i"]


def test_work_for_home_only_never_goes_out() -> None:
    full = job("r", 8, on="h0", ran_s=60)
    home_only = job("a", 2, waited_s=MAX_WAIT_S)
    units = (home_only.units[0].model_copy(update={"selectors": (ONPREM,)}),)
    home_only = home_only.model_copy(update={"units": units})
    assert plan(cluster(home_only, full, rented=[("i", 2)])) == []


# --- packing --------------------------------------------------------------------------------


def test_small_jobs_move_together_so_that_a_wide_one_fits() -> None:
    snapshot = cluster(
        job("wide", 8),
        job("s1", 1, on="h0", ran_s=HOUR_S),
        job("s2", 7, on="h1", ran_s=HOUR_S),
        home=2,
    )
    assert plan(snapshot) == ["move s1 pack h1", "start wide h0"]


def test_a_full_node_is_emptied_where_no_other_can_be() -> None:
    pinned = [job(f"p{n}", 3, on=f"h{n}", ran_s=HOUR_S, saves=False) for n in (1, 2)]
    snapshot = cluster(
        job("wide", 8),
        job("s1", 4, on="h0", ran_s=HOUR_S),
        job("s2", 4, on="h0", ran_s=HOUR_S),
        *pinned,
        home=3,
    )
    assert plan(snapshot) == ["move s1 pack h1", "move s2 pack h2", "start wide h0"]


def test_nothing_is_packed_that_moved_a_moment_ago_or_cannot_move() -> None:
    for one in (job("s1", 1, on="h0", ran_s=200), job("s1", 1, on="h0", ran_s=HOUR_S, saves=False)):
        other = job("s2", 7, on="h1", ran_s=HOUR_S, saves=False)
        assert plan(cluster(job("wide", 8), one, other, home=2)) == []


def test_a_job_at_its_quota_of_interruptions_is_left_alone() -> None:
    tired = job("s1", 1, on="h0", ran_s=HOUR_S, interruption_count=2)
    other = job("s2", 7, on="h1", ran_s=HOUR_S, interruption_count=2)
    assert plan(cluster(job("wide", 8), tired, other, home=2)) == []
    earned = tired.model_copy(
        update={"progress_s": 12 * HOUR_S, "submitted_at_s": NOW_S - 13 * HOUR_S}
    )
    assert plan(cluster(job("wide", 8), earned, other, home=2))[0] == "move s1 pack h1"


# --- suspending -----------------------------------------------------------------------------


def rich(name: str = "rich", gpus: int = 8, **changes: Any) -> JobView:
    """Return a job at home that has worked for 50 hours without a moment of delay."""
    return job(name, gpus, **{"on": "h0", "ran_s": 50 * HOUR_S, **changes})


def test_a_new_job_gets_the_place_of_one_that_can_wait() -> None:
    made = actions(cluster(job("new", 8), rich()))
    assert [type(action) for action in made] == [Suspend, Start]
    suspended = made[0]
    assert isinstance(suspended, Suspend)
    assert suspended.reason.code == "slack"
    # 30 min + 2 % of 50 h, less two trips and a boot.
    spare_s = MAX_WAIT_S + 0.02 * 50 * HOUR_S - 2 * TRIP_S - RESERVE_S
    assert suspended.reason.facts["spare_s"] == spare_s


def test_nothing_is_suspended_for_work_that_can_move_while_that_only_swaps_who_pays() -> None:
    def planned(saves: bool, out: float) -> list[str]:
        starts = Starts(count=9, late_count=0, resumed_count=4, resumed_out_count=out)
        new = job("new", 8, saves=saves)
        return plan(cluster(new, rich()).model_copy(update={"starts": starts}))

    assert planned(saves=True, out=2) == []
    assert planned(saves=True, out=1) == ["suspend rich", "start new h0"]
    assert planned(saves=False, out=4) == ["suspend rich", "start new h0"]


def test_the_smallest_job_that_makes_enough_room_is_suspended() -> None:
    snapshot = cluster(job("new", 2), rich("four", 4), rich("two", 2), rich("also", 2))
    assert plan(snapshot)[0] in ("suspend two", "suspend also")


def test_a_job_that_was_late_already_is_not_suspended() -> None:
    late = rich(submitted_at_s=NOW_S - 52 * HOUR_S)
    assert plan(cluster(job("new", 8), late)) == []


def test_nobody_suspends_work_without_checkpoints() -> None:
    assert plan(cluster(job("new", 8), rich(saves=False))) == []


def test_thrifty_lets_the_new_job_wait_first() -> None:
    early, late = job("new", 8, waited_s=30), job("new", 8, waited_s=LAST_S)
    never = {"suspend_after_s": 1e9, "rent_after_s": 1e9}
    assert plan(cluster(early, rich()), **never) == []
    assert plan(cluster(late, rich()), **never)[0] == "suspend rich"


def test_a_suspended_job_leaves_free_gpus_to_work_that_costs_money() -> None:
    waiting = job("s", 8, ran_s=50 * HOUR_S, useful_from_s=None, progress_s=50 * HOUR_S, slots=())
    out = job("c", 8, on="i", ran_s=HOUR_S)
    assert plan(cluster(waiting, out, rented=[("i", 8)])) == ["move c home h0"]


# --- exchanging -----------------------------------------------------------------------------


def test_work_that_cannot_move_takes_the_place_of_work_that_can() -> None:
    pinned = job("pinned", 4, waited_s=LAST_S + TRIP_S, saves=False)
    mover = job("mover", 4, on="h0", ran_s=10 * HOUR_S, suspension_count=9)
    other = job("other", 4, on="h0", ran_s=60)
    made = plan(cluster(pinned, mover, other, rented=[("i", 4)]))
    assert made[:2] == ["move mover exchange i", "start pinned h0"]


def test_without_such_work_it_runs_on_the_rented_node() -> None:
    pinned = job("pinned", 4, waited_s=LAST_S + TRIP_S, saves=False)
    fixed = job("fixed", 8, on="h0", ran_s=10 * HOUR_S, saves=False)
    assert plan(cluster(pinned, fixed, rented=[("i", 4)])) == ["start pinned i"]


# --- renting --------------------------------------------------------------------------------

FULL = job("full", 8, on="h0", ran_s=60)


def test_a_node_of_the_right_size_is_rented_when_home_had_its_time() -> None:
    assert plan(cluster(job("a", 4, waited_s=29), FULL)) == []
    assert plan(cluster(job("a", 4, waited_s=30), FULL)) == ["launch x4"]


def test_what_boots_already_is_counted() -> None:
    waiting = (job("a", 4, waited_s=30), job("b", 4, waited_s=30))
    assert plan(cluster(*waiting, FULL, booting=[("i", 8)])) == []
    assert plan(cluster(*waiting, FULL, booting=[("i", 4)])) == ["launch x4"]


def test_a_gang_is_rented_whole_or_not_at_all() -> None:
    gang = job("g", 20, waited_s=LAST_S)
    assert plan(cluster(gang, FULL)) == ["launch x8", "launch x8", "launch x4"]
    capped = Caps(node_count=2)
    assert plan(cluster(gang, FULL, caps=capped)) == []


def test_no_cap_is_passed_for_a_job() -> None:
    waiting = tuple(job(f"a{n}", 1, waited_s=30) for n in range(5))
    used = Commitment(node_count=1, gpu_count=1, usd_per_hour=3.0)
    for caps in (Caps(node_count=3), Caps(gpu_count=3), Caps(usd_per_hour=9.0)):
        assert plan(cluster(*waiting, FULL, caps=caps, commitment=used)) == ["launch x1"] * 2


def test_a_larger_node_is_rented_only_if_it_is_far_cheaper_for_each_gpu() -> None:
    waiting = job("a", 4, waited_s=30)
    dear = tuple(o for o in SIZES if o.gpu_count != 8)
    little = by_size(8).model_copy(update={"usd_per_hour": 8 * 3.0 * 0.95})
    much = by_size(8).model_copy(update={"usd_per_hour": 8 * 3.0 * 0.4})
    assert plan(cluster(waiting, FULL, offers=(*dear, little))) == ["launch x4"]
    assert plan(cluster(waiting, FULL, offers=(*dear, much))) == ["launch x8"]


def test_nothing_is_rented_while_an_operator_paused_it_or_the_cluster_goes_down() -> None:
    waiting = job("a", 4, waited_s=MAX_WAIT_S)
    for mode in (Mode(is_out_paused=True), Mode(is_closing=True)):
        assert plan(cluster(waiting, FULL, mode=mode)) == []


def test_boots_that_nobody_needs_any_more_are_ended() -> None:
    assert plan(cluster(FULL, booting=[("i", 8)])) == ["terminate i"]
    held = cluster(job("a", 8, waited_s=30), FULL, booting=[("i", 8)])
    assert plan(held) == []


def test_a_job_that_will_soon_find_room_at_home_is_not_rented_for() -> None:
    waiting = cluster(job("a", 1, waited_s=30), FULL)
    assert plan(waiting.model_copy(update={"home_release_gpus_per_s": 1 / 60})) == []
    assert plan(waiting.model_copy(update={"home_release_gpus_per_s": 1 / 6000})) == ["launch x1"]
    assert plan(waiting.model_copy(update={"home_release_gpus_per_s": None})) == ["launch x1"]


def test_while_enough_jobs_start_in_time_the_widest_are_let_wait() -> None:
    waiting = cluster(job("wide", 8, waited_s=90), job("small", 1, waited_s=90), FULL)

    def rented(late: float) -> list[str]:
        starts = Starts(count=100, late_count=late)
        return plan(waiting.model_copy(update={"starts": starts}), wait_target_share=0.95)

    assert rented(2) == []
    assert rented(4) == ["launch x1"]
    assert rented(5) == ["launch x8", "launch x1"]


def test_where_the_target_is_out_of_reach_and_home_has_room_soon_jobs_wait_for_home() -> None:
    def rented(waited_s: float, late: float, soon: float) -> list[str]:
        starts = Starts(count=100, late_count=late, waited_count=5, soon_count=soon)
        waiting = cluster(job("a", 8, waited_s=waited_s), FULL)
        return plan(waiting.model_copy(update={"starts": starts}), soon_share=0.6)

    assert rented(60, late=11, soon=3) == []
    assert rented(RESERVE_S, late=11, soon=3) == ["launch x8"]
    assert rented(60, late=9, soon=5) == ["launch x8"]
    assert rented(60, late=11, soon=2) == ["launch x8"]


def test_when_too_many_start_late_each_is_rented_for_at_once() -> None:
    waiting = cluster(job("a", 8), FULL)
    assert plan(waiting.model_copy(update={"starts": Starts(count=100, late_count=4)})) == []
    late = Starts(count=100, late_count=9)
    assert plan(waiting.model_copy(update={"starts": late})) == ["launch x8"]


# --- coming home ----------------------------------------------------------------------------


def test_rented_work_comes_home_when_there_is_room() -> None:
    out = job("out", 4, on="i", ran_s=HOUR_S)
    made = actions(cluster(out, rented=[("i", 4)]))
    assert [type(action) for action in made] == [Move]
    assert isinstance(made[0], Move)
    assert made[0].purpose == "home"
    assert made[0].reason.facts["rented_s"] == HOUR_S


def test_work_that_came_a_moment_ago_or_would_be_late_stays() -> None:
    young = job("out", 4, on="i", ran_s=TRIP_S - 1)
    late = job("out", 4, on="i", ran_s=HOUR_S, submitted_at_s=NOW_S - 3 * HOUR_S)
    pinned = job("out", 4, on="i", ran_s=HOUR_S, saves=False)
    for one in (young, late, pinned):
        assert plan(cluster(one, rented=[("i", 4)])) == []


def test_small_jobs_make_way_for_wide_work_that_comes_home() -> None:
    snapshot = cluster(
        job("out", 8, on="i", ran_s=HOUR_S),
        job("s1", 1, on="h0", ran_s=HOUR_S),
        job("s2", 7, on="h1", ran_s=HOUR_S),
        home=2,
        rented=[("i", 8)],
    )
    assert plan(snapshot) == ["move s1 pack h1", "move out home h0"]


# --- returning ------------------------------------------------------------------------------


def test_a_rented_node_without_work_is_returned_after_its_time() -> None:
    assert plan(cluster(FULL, rented=[("i", 4)], idle_s=59)) == []
    assert plan(cluster(FULL, rented=[("i", 4)], idle_s=60)) == ["drain i"]


def test_half_of_a_waiting_gang_is_kept() -> None:
    gang = job("g", 16, waited_s=LAST_S)
    half = cluster(gang, FULL, rented=[("i", 8)], booting=[("j", 8)], idle_s=600)
    assert plan(half) == []


def test_the_last_job_leaves_no_rented_node_behind() -> None:
    assert plan(cluster(rented=[("i", 4)], idle_s=60)) == ["drain i"]


def test_at_a_money_cap_everything_rented_leaves_and_nothing_goes_out() -> None:
    spent: dict[str, Any] = {
        "caps": Caps(usd_per_day=10.0),
        "commitment": Commitment(node_count=1, day_usd=10.0),
    }
    waiting = job("a", 4, waited_s=MAX_WAIT_S)
    assert plan(cluster(waiting, FULL, rented=[("i", 4)], **spent)) == ["drain i"]

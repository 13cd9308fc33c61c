"""Laws of the policy for jobs, over random clusters."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.models import Caps
from hybrid.core.models.work import JobView
from hybrid.core.policy.decide import decide
from hybrid.core.policy.jobs.params import PROFILES, JobParams
from hybrid.core.policy.jobs.terms import Terms
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Drain, Launch, Move, Plan, Snapshot, Start, Starts, Suspend
from tests.core.make import NOW_S, ONPREM, laws, make_demand
from tests.core.policy.jobs.make import cluster, job

HOUR_S = 3_600.0
ages = st.sampled_from([0.0, 30.0, 61.0, 700.0, 1_400.0, 2_000.0, 5 * HOUR_S, 60 * HOUR_S])


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Return a cluster whose jobs are where they may be: no node holds more than it has."""
    home = draw(st.integers(1, 4))
    rented = [
        (f"i{n}", draw(st.sampled_from([1, 2, 4, 8]))) for n in range(draw(st.integers(0, 3)))
    ]
    free = {f"h{n}": 8 for n in range(home)} | dict(rented)
    jobs: list[JobView] = []
    for node_id in sorted(free):
        while free[node_id] and draw(st.booleans()):
            gpus = draw(st.integers(1, free[node_id]))
            free[node_id] -= gpus
            jobs.append(_running(draw, f"r{len(jobs)}", gpus, node_id))
    for n in range(draw(st.integers(0, 6))):
        gpus = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 12, 16]))
        waiting = job(f"w{n}", gpus, waited_s=draw(ages), saves=draw(st.booleans()))
        if draw(st.integers(0, 4)) == 0:
            units = tuple(u.model_copy(update={"selectors": (ONPREM,)}) for u in waiting.units)
            waiting = waiting.model_copy(update={"units": units})
        jobs.append(waiting)
    return cluster(
        *jobs,
        home=home,
        rented=rented,
        booting=[(f"b{n}", draw(st.sampled_from([1, 8]))) for n in range(draw(st.integers(0, 2)))],
        idle_s=draw(st.sampled_from([0.0, 200.0])),
        caps=draw(st.sampled_from([Caps(), Caps(node_count=3), Caps(gpu_count=10)])),
        starts=draw(st.sampled_from([None, Starts(count=50, late_count=0)])),
        home_release_gpus_per_s=draw(st.sampled_from([None, 0.0, 0.01])),
    )


def _running(draw: st.DrawFn, name: str, gpus: int, node_id: str) -> JobView:
    ran_s = draw(ages)
    return job(
        name,
        gpus,
        on=node_id,
        ran_s=ran_s,
        saves=draw(st.booleans()),
        submitted_at_s=NOW_S - ran_s - draw(st.sampled_from([0.0, 600.0, 4_000.0])),
        interruption_count=draw(st.integers(0, 3)),
        suspension_count=draw(st.integers(0, 2)),
    )


profiles = st.sampled_from([PolicyParams(jobs=jobs) for jobs in PROFILES.values()])


def planned(snapshot: Snapshot, params: PolicyParams) -> Plan:
    return decide(snapshot, params)


@laws
@given(clusters(), profiles, st.randoms(use_true_random=False))
def test_the_order_of_what_is_seen_changes_nothing(
    snapshot: Snapshot, params: PolicyParams, random: Any
) -> None:
    def mixed(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(random.sample(items, len(items)))

    other = snapshot.model_copy(
        update={
            name: mixed(getattr(snapshot, name))
            for name in ("jobs", "nodes", "instances", "offers")
        }
    )
    assert planned(other, params) == planned(snapshot, params)


@laws
@given(clusters(), profiles)
def test_no_node_is_ever_given_more_than_it_has(snapshot: Snapshot, params: PolicyParams) -> None:
    free = {node.node_id: node.available["GPU"] for node in snapshot.nodes}
    place = {one.job_id: one.slots for one in snapshot.jobs}
    for action in planned(snapshot, params).actions:
        if isinstance(action, Suspend | Move):
            is_home = place[action.job_id][0].node_id.startswith("h")
            for slot in place[action.job_id]:
                # Rented GPUs are held while a job on them is saved.
                free[slot.node_id] += slot.gpus if is_home else 0.0
        if isinstance(action, Start | Move):
            for slot in action.slots:
                free[slot.node_id] -= slot.gpus
                assert free[slot.node_id] >= -1e-9


@laws
@given(clusters(), profiles)
def test_a_job_is_touched_once_and_whole(snapshot: Snapshot, params: PolicyParams) -> None:
    jobs = {one.job_id: one for one in snapshot.jobs}
    made = [a for a in planned(snapshot, params).actions if isinstance(a, Start | Suspend | Move)]
    assert max(Counter(action.job_id for action in made).values(), default=1) == 1
    for action in made:
        one = jobs[action.job_id]
        assert bool(one.slots) != isinstance(action, Start)
        if isinstance(action, Start | Move):
            sizes = [piece.shape["GPU"] for piece in one.pieces]
            assert [slot.gpus for slot in action.slots] == sizes
            assert len({slot.node_id for slot in action.slots}) == len(sizes)


@laws
@given(clusters(), profiles)
def test_what_cannot_be_saved_or_has_had_its_share_is_never_stopped(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    jobs = {one.job_id: one for one in snapshot.jobs}
    terms = Terms(NOW_S, params.jobs, 300.0)
    for action in planned(snapshot, params).actions:
        if isinstance(action, Suspend | Move):
            one = jobs[action.job_id]
            assert one.checkpoint is not None
            earned = terms.progress_s(one) / params.jobs.interruption_earn_s
            assert one.interruption_count + 1 <= params.jobs.interruptions + earned
            assert terms.slack_s(one) >= one.trip_s


@laws
@given(clusters(), profiles)
def test_caps_hold_and_nothing_is_rented_for_work_that_must_stay(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    plan = planned(snapshot, params)
    launches = [action for action in plan.actions if isinstance(action, Launch)]
    caps, used = snapshot.caps, snapshot.commitment
    assert caps.node_count is None or used.node_count + len(launches) <= caps.node_count
    gpus = sum(launch.offer.gpu_count for launch in launches)
    assert caps.gpu_count is None or used.gpu_count + gpus <= caps.gpu_count
    movable = {one.job_id for one in snapshot.jobs if not one.units[0].selectors}
    assert all(launch.reason.facts["for_job"] in movable for launch in launches)
    cloud = {node.node_id for node in snapshot.nodes if node.instance_id}
    for action in plan.actions:
        if isinstance(action, Start) and action.slots[0].node_id in cloud:
            assert action.job_id in movable


@laws
@given(clusters(), profiles)
def test_what_is_rented_is_no_more_than_waits(snapshot: Snapshot, params: PolicyParams) -> None:
    plan = planned(snapshot, params)
    started = {action.job_id for action in plan.actions if isinstance(action, Start)}
    waiting = [one for one in snapshot.jobs if not one.slots and one.job_id not in started]
    launches = [action for action in plan.actions if isinstance(action, Launch)]
    # A size of 3 is rented as 4; no piece is rented for twice.
    assert sum(a.offer.gpu_count for a in launches) <= sum(4 / 3 * one.gpus for one in waiting)
    assert len(launches) <= sum(len(one.pieces) for one in waiting)


@laws
@given(clusters(), profiles)
def test_no_node_with_work_or_just_given_work_is_returned(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    plan = planned(snapshot, params)
    given_work = {
        slot.node_id
        for action in plan.actions
        if isinstance(action, Start | Move)
        for slot in action.slots
    }
    busy = {slot.node_id for one in snapshot.jobs for slot in one.slots}
    drained = {action.instance_id for action in plan.actions if isinstance(action, Drain)}
    assert not drained & (given_work | busy)


@laws
@given(clusters(), st.integers(1, 6))
def test_more_work_never_rents_fewer_gpus(snapshot: Snapshot, more: int) -> None:
    params = PolicyParams(jobs=JobParams(), launches_per_tick=1_000, first_wave_count=1_000)
    bare = snapshot.model_copy(update={"starts": None, "caps": Caps()})
    jobs = (*bare.jobs, *(job(f"x{n}", 8, waited_s=2_000.0) for n in range(more)))
    packing_slack = 8
    before, after = (
        rented(decide(bare, params)),
        rented(decide(bare.model_copy(update={"jobs": jobs}), params)),
    )
    assert after >= before - packing_slack


def rented(plan: Plan) -> int:
    return sum(a.offer.gpu_count for a in plan.actions if isinstance(a, Launch))


@laws
@given(
    clusters(),
    st.integers(1, 9),
    st.sampled_from([Caps(node_count=3), Caps(gpu_count=10), Caps(usd_per_hour=30.0)]),
)
def test_jobs_and_work_that_only_ray_knows_share_the_caps_and_the_ramp(
    snapshot: Snapshot, count: int, caps: Caps
) -> None:
    params = PolicyParams(stabilisation_s=0.0, launches_per_tick=4)
    waiting = (make_demand(4, count, waiting_s=9_000.0),)
    both = snapshot.model_copy(update={"demands": waiting, "caps": caps})

    launches = [action for action in decide(both, params).actions if isinstance(action, Launch)]

    used = both.commitment
    assert len(launches) <= params.launches_per_tick
    assert caps.node_count is None or used.node_count + len(launches) <= caps.node_count
    gpus = used.gpu_count + sum(launch.offer.gpu_count for launch in launches)
    assert caps.gpu_count is None or gpus <= caps.gpu_count
    usd = used.usd_per_hour + sum(launch.offer.usd_per_hour for launch in launches)
    assert caps.usd_per_hour is None or usd <= caps.usd_per_hour + 1e-9

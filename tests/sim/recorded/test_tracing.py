"""A running cluster's demand as a trace: exact where the ledger knows, close where only Ray did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import hybrid
from hybrid.adapters.decision_files import DecisionFiles
from hybrid.core.models import Job, JobSpec, JobState, Node
from hybrid.core.policy.plan import Snapshot, Source
from hybrid.sim.engine import Engine
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Reservoir
from hybrid.sim.recorded.reading import RecordFiles
from hybrid.sim.recorded.tracing import demand_trace
from hybrid.sim.recorded.usage import CUT_END, CUT_START, STILL_WAITS, UNSEEN
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.trace import Trace
from tests.core.make import make_demand, make_gang, make_node
from tests.world.quick import quick_params
from tests.world.world import World

START_S = 1_800_000_000.0


def node(name: str, used: float, *, total: float = 8) -> Node:
    return make_node(name, total, free=total - used)


def seen(at_s: float, *nodes: Node, **more: object) -> Snapshot:
    return Snapshot.model_validate({"now_s": START_S + at_s, "nodes": nodes, **more})


def job(job_id: str, gpus: float, *times: float | None, **spec: object) -> Job:
    created_s, started_s, ended_s = (None if t is None else START_S + t for t in times)
    state = JobState.QUEUED if started_s is None else JobState.RUNNING
    return Job(
        job_id=job_id,
        spec=JobSpec.model_validate({"entrypoint": "x", "gpus": gpus, **spec}),
        state=state if ended_s is None else JobState.SUCCEEDED,
        created_at_s=created_s or 0.0,
        state_at_s=created_s or 0.0,
        started_at_s=started_s,
        ended_at_s=ended_s,
    )


def trace_of(
    snapshots: Sequence[Snapshot] = (), jobs: Sequence[Job] = (), *, since_s: float = -1e9
) -> Trace:
    return demand_trace("lab", jobs, snapshots, since_s=START_S + since_s, now_s=START_S + 10_000)


def rows(trace: Trace) -> list[tuple[float, float, int]]:
    return [(each.submit_s, each.duration_s, each.gpus) for each in trace.jobs]


def counts(trace: Trace) -> dict[str, int]:
    return {each.reason: each.count for each in trace.skipped}


# --- the ledger's jobs --------------------------------------------------------------------


def test_a_job_of_the_ledger_is_exact() -> None:
    trace = trace_of(
        jobs=[
            job("b", 4, 100, 160, 1_160, user="ada"),
            job("a", 1, 50, 50.5, 350.25, user="bob"),
        ]
    )

    assert rows(trace) == [(0.0, 299.75, 1), (50.0, 1_000.0, 4)]
    assert [(each.job_id, each.user, each.class_name) for each in trace.jobs] == [
        ("a", "bob", "batch"),
        ("b", "ada", "batch"),
    ]
    assert not any(each.is_checkpointable for each in trace.jobs)
    assert trace.skipped == ()


def test_what_is_no_whole_job_is_counted() -> None:
    trace = trace_of(
        jobs=[
            job("never", 4, 100, None, None),
            job("still", 0.5, 9_000, 9_100, None),
            job("no-gpu", 0, 100, 200, 300),
            job("at-once", 1, 100, 200, 200),
            job("old", 1, -500, -400, 200),
        ],
        since_s=0,
    )

    assert rows(trace) == [(0.0, 900.0, 1)]
    assert counts(trace) == {
        "a job that never started: nobody knows how long it would run": 1,
        "a job that ended when it started, by the ledger's clock": 1,
        CUT_END: 1,
        "a share of a GPU, counted as a whole one": 1,
    }


def test_nothing_at_all_says_what_to_do() -> None:
    with pytest.raises(TraceError, match=r"give a longer --since, and see controller\.record"):
        trace_of()


# --- what only Ray knew -------------------------------------------------------------------


def test_what_waited_and_then_ran_has_its_wait() -> None:
    trace = trace_of(
        [
            seen(0, node("a", 0)),
            seen(100, node("a", 0), demands=[make_demand(4, waiting_s=40)]),
            seen(160, node("a", 4)),
            seen(760, node("a", 0)),
        ]
    )

    assert rows(trace) == [(0.0, 600.0, 4)]
    assert trace.jobs[0].class_name == "ray"
    assert trace.skipped == ()


def test_two_that_were_seen_to_wait_are_two_even_on_one_node_at_once() -> None:
    trace = trace_of(
        [
            seen(0, node("a", 0)),
            seen(10, node("a", 0), demands=[make_demand(2, 2, waiting_s=5)]),
            seen(20, node("a", 4)),
            seen(120, node("a", 2)),
            seen(220, node("a", 0)),
        ]
    )

    assert rows(trace) == [(0.0, 100.0, 2), (5.0, 200.0, 2)]


def test_what_was_never_seen_to_wait_came_when_it_began() -> None:
    trace = trace_of([seen(0, node("a", 0)), seen(10, node("a", 3)), seen(70, node("a", 0))])

    assert rows(trace) == [(0.0, 60.0, 3)]


def test_a_gang_is_one_job_over_its_nodes() -> None:
    gang = make_gang(make_demand(4, 2), waiting_s=30)
    trace = trace_of(
        [
            seen(0, node("a", 0), node("b", 0)),
            seen(100, node("a", 0), node("b", 0), gangs=[gang]),
            seen(200, node("a", 4), node("b", 4)),
            seen(800, node("a", 0), node("b", 4)),
            seen(900, node("a", 0), node("b", 0)),
        ]
    )

    assert rows(trace) == [(0.0, 700.0, 8)]


def test_gpu_time_adds_up_whatever_belongs_together() -> None:
    used = (0, 3, 5, 2, 7, 7, 1, 8, 0)
    trace = trace_of([seen(60.0 * number, node("a", gpus)) for number, gpus in enumerate(used)])

    assert trace.gpu_s == 60 * sum(used)


def test_the_edges_of_a_record_are_cut_and_counted() -> None:
    trace = trace_of([seen(0, node("a", 2)), seen(50, node("a", 2)), seen(100, node("a", 5))])

    # What began at the last look has run for no time yet.
    assert rows(trace) == [(0.0, 100.0, 2)]
    assert counts(trace) == {CUT_START: 1, CUT_END: 2}


def test_what_left_the_queue_and_what_still_waits_is_counted() -> None:
    waits = make_demand(8, 3, waiting_s=10)
    trace = trace_of(
        [
            seen(0, node("a", 0), demands=[make_demand(1, 2, waiting_s=0), waits]),
            seen(10, node("a", 1), demands=[waits]),
            seen(100, node("a", 0), demands=[waits]),
        ]
    )

    assert rows(trace) == [(0.0, 90.0, 1)]
    assert counts(trace) == {UNSEEN: 1, STILL_WAITS: 3}


def test_shares_of_a_gpu_are_as_many_gpus_as_they_hold_together() -> None:
    trace = trace_of([seen(0, node("a", 0)), seen(10, node("a", 1.5)), seen(20, node("a", 0))])

    assert rows(trace) == [(0.0, 10.0, 2)]


def test_a_node_that_is_lost_ends_what_ran_on_it() -> None:
    trace = trace_of([seen(0, node("a", 0)), seen(10, node("a", 4)), seen(60)])

    assert rows(trace) == [(0.0, 50.0, 4)]


def test_while_ray_is_silent_nothing_is_concluded() -> None:
    blind = [Source(name="ray", is_up=False, problem="down")]
    trace = trace_of(
        [
            seen(0, node("a", 0)),
            seen(10, node("a", 4)),
            seen(20, blind=blind),
            seen(70, node("a", 0)),
        ]
    )

    assert rows(trace) == [(0.0, 60.0, 4)]


def test_a_driver_of_the_ledger_is_not_counted_twice() -> None:
    """It waits in Ray, holds GPUs there, and beside it a task of as many comes and goes."""
    driver = job("driver", 2, 0, 30, 630)
    trace = trace_of(
        [
            seen(0, node("a", 0)),
            seen(10, node("a", 0), demands=[make_demand(2, waiting_s=10)]),
            seen(31, node("a", 2)),
            seen(100, node("a", 4)),
            seen(200, node("a", 2)),
            seen(631, node("a", 0)),
        ],
        [driver],
    )

    assert rows(trace) == [(0.0, 600.0, 2), (100.0, 100.0, 2)]
    assert [each.job_id for each in trace.jobs] == ["driver", "ray-000001"]


def test_decisions_before_the_time_that_is_asked_for_are_left_out() -> None:
    snapshots = [seen(0, node("a", 4)), seen(100, node("a", 0)), seen(200, node("a", 1))]
    trace = trace_of([*snapshots, seen(300, node("a", 0))], since_s=50)

    assert rows(trace) == [(0.0, 100.0, 1)]


# --- a whole controller -------------------------------------------------------------------


def test_a_controllers_own_record_becomes_a_trace_that_can_be_simulated(tmp_path: Path) -> None:
    """The real loop records a simulated Ray; what is known of it is close to what really was."""
    world = World(tmp_path, params=quick_params())
    files = DecisionFiles(
        tmp_path / "decisions", version=hybrid.__version__, kept_s=86_400.0, pause_s=0.0
    )
    world.loop.recorder = files
    tasks = []
    for number in range(300):
        if number == 20:
            tasks += world.ray.submit(12, {"GPU": 1.0}, 60.0)
        if number == 25:
            tasks += world.ray.submit_gang("g", 2, {"GPU": 4.0}, 40.0)
        world.step()
        while files._queue.qsize() > 4:  # in this world no time passes between two ticks
            pass
    files.close()
    assert all(task.is_done for task in tasks)

    record = RecordFiles.at(tmp_path / "decisions")
    snapshots = [each.decision.snapshot for each in record.each()]
    trace = demand_trace("world", (), snapshots, since_s=0.0, now_s=world.clock.now_s())

    really_gpu_s = 12 * 60 + 8 * 40
    assert trace.gpu_s == pytest.approx(really_gpu_s, rel=0.05)
    assert {each.gpus for each in trace.jobs} >= {8}
    assert trace.jobs[0].submit_s == 0.0
    engine = Engine(trace, SimParams(gpus=8), Reservoir.of("balanced"))
    engine.run()
    assert engine.done_count == len(trace.jobs)

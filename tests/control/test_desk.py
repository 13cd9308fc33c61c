"""The views: every node and instance is in them, every number adds up, unknown is not zero."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.control.present import _activity_text
from hybrid.core.lifecycle import Fact
from hybrid.core.models import (
    Caps,
    InstanceState,
    JobSpec,
    JobState,
    LabelConstraint,
    Node,
    NodeStatus,
    Selector,
    Spend,
)
from hybrid.core.views import Alarm, NodeView, StatusView
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, two_clouds

GPU = {"GPU": 1.0}
S = InstanceState


@pytest.fixture
def world(fast_path: Path) -> World:
    world = World(fast_path, params=quick_params(), step_s=STEP_S, offers=list(two_clouds()))
    for cloud in world.clouds.values():
        cloud.boot_s = 10.0
    return world


def cloud_only() -> tuple[Selector, ...]:
    return ((LabelConstraint(key="site", values=("cloud",)),),)


def burst(world: World, *, lasts_s: float = 5000.0) -> None:
    world.ray.submit(12, GPU, lasts_s)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))


def status(world: World) -> StatusView:
    world.desk.publish()
    return world.desk.status()


def nodes(world: World) -> dict[str, NodeView]:
    return {node.name: node for node in status(world).nodes}


def alarms(world: World) -> dict[str, Alarm]:
    return {alarm.code: alarm for alarm in status(world).alarms}


# --- status ---------------------------------------------------------------------------------


def test_status_before_the_first_tick_says_that_it_starts(world: World) -> None:
    view = world.desk.status()

    assert (view.summary, view.controller.state) == ("Starting.", "starting")
    assert view.controller.last_tick_at_s is None
    assert view.nodes == ()


def test_status_while_starting_says_what_is_waited_for(world: World) -> None:
    world.fleet.slow = {"host-1"}
    world.run(2 * STEP_S)

    view = status(world)

    assert (view.controller.state, view.controller.phase) == (
        "starting",
        "waiting for host-1 to join",
    )
    assert view.summary == "Starting: waiting for host-1 to join."
    assert nodes(world)["host-1"].state == "joining"
    assert view.alarms == (), "a start is no alarm"


def test_status_while_ray_is_not_up_yet_says_so(world: World) -> None:
    world.ray.is_silent = True
    world.step()

    view = status(world)

    assert view.controller.phase == "starting the Ray head"
    assert view.alarms == ()


def test_status_at_rest_is_ready_and_quiet(world: World) -> None:
    world.run(20)

    view = status(world)

    assert view.controller.state == "ready"
    assert not view.is_bursting
    assert view.alarms == ()
    assert [n.name for n in view.nodes] == ["head", "host-0", "host-1"]
    assert {n.state for n in view.nodes} == {"idle"}
    assert {s.name: s.is_up for s in view.sources} == {
        "ray": True,
        "provider:sim": True,
        "provider:other": True,
    }


def test_status_in_a_burst_shows_work_money_and_reasons(world: World) -> None:
    burst(world)
    world.ray.submit(1, {"GPU": 64.0}, 10.0)
    world.run(10)

    view = status(world)

    rented = nodes(world)["i-0001"]
    assert view.is_bursting
    assert (rented.site, rented.state, rented.gpus_used) == ("cloud", "busy", 4.0)
    assert rented.usd_per_hour == 2.0
    assert view.budget.now.node_count == 1
    [demand] = view.demand
    assert (demand.shape, demand.count) == ({"GPU": 64.0}, 1)
    assert any(f.is_for_ever for f in view.plan.findings)


def test_ages_grow_although_the_loop_hangs(world: World) -> None:
    world.run(20)
    world.desk.publish()
    seen_s = world.clock.now_s()
    world.clock.advance(40.0)

    view = world.desk.status()

    assert view.at_s == seen_s + 40.0
    assert view.controller.last_tick_at_s == seen_s


def test_status_names_the_switches_and_the_end(world: World) -> None:
    burst(world)
    world.desk.pause("out", owner="ann")
    world.step()
    assert status(world).mode.is_out_paused

    world.desk.close(drain_s=100.0, owner="ann")
    world.step()

    assert status(world).controller.state == "closing"
    assert status(world).controller.phase == "returning rented instances: 1 draining"


def test_a_tick_that_hangs_is_seen_from_outside(world: World) -> None:
    world.run(20)
    world.desk.publish()
    world.desk.tick_started()

    world.clock.advance(world.params.stall_s + 1)

    assert world.desk.status().controller.state == "stalled"


def test_a_tick_that_failed_is_seen_with_its_reason(world: World) -> None:
    world.run(20)
    world.desk.publish()
    world.desk.fault = "the ledger cannot be written"

    controller = world.desk.status().controller

    assert (controller.state, controller.phase) == ("degraded", "the ledger cannot be written")


# --- nodes ----------------------------------------------------------------------------------


def test_an_instance_that_is_no_node_yet_is_listed_with_its_state_and_unknown_use(
    world: World,
) -> None:
    world.clouds["sim"].never_joins = True
    world.ray.submit(12, GPU, 500.0)
    world.run(60, until=lambda: bool(world.machines()))

    view = nodes(world)["i-0001"]

    assert (view.state, view.gpus_total, view.gpus_used) == ("booting", 4.0, None)
    assert "waited" in view.why


def test_a_draining_node_is_shown_as_draining_with_the_reason(world: World) -> None:
    burst(world)
    world.desk.drain("i-0001", deadline_s=500.0, owner="ann")
    world.step()

    view = nodes(world)["i-0001"]

    assert (view.state, view.why, view.gpus_used) == ("draining", "drained by ann", 4.0)


def test_a_node_that_nobody_rented_is_shown_and_written_down(world: World) -> None:
    world.run(20)
    world.ray.add({"GPU": 8.0, "CPU": 8.0}, {"site": "cloud"}, instance_id="i-stranger")
    world.ray.add({"CPU": 2.0}, {})
    world.clock.advance(STEP_S)
    world.loop.tick()

    names = nodes(world)

    assert names["i-stranger"].site == "cloud"
    assert names["node-4"].site == "unknown"
    assert world.kinds().count("unknown_node_seen") == 1


def test_a_node_that_was_drained_has_left_and_one_that_failed_has_died(world: World) -> None:
    burst(world, lasts_s=60.0)
    world.run(600, until=world.is_quiet)
    left = [e.subject for e in world.desk.events(limit=10_000).events if e.kind == "node_left"]
    burst(world)
    world.ray.kill(next(n for n in world.ray.nodes.values() if n.instance_id == "i-0002"))
    world.step()

    died = [e.subject for e in world.desk.events(limit=10_000).events if e.kind == "node_died"]

    assert (left, died) == (["i-0001"], ["i-0002"])


def test_a_new_controller_repeats_no_join_and_knows_since_when(world: World) -> None:
    burst(world)
    before = nodes(world)
    count = world.kinds().count("node_joined")
    world.boot(is_last_alive=False)
    world.run(5)

    assert world.kinds().count("node_joined") == count
    assert {n: v.since_at_s for n, v in nodes(world).items()} == {
        n: v.since_at_s for n, v in before.items()
    }
    assert None not in {node.since_at_s for node in before.values()}
    names = {e.subject for e in world.desk.events(limit=1000).events if e.kind == "node_joined"}
    assert names == set(before)


def test_a_node_says_what_keeps_it_busy_and_an_idle_one_nothing(world: World) -> None:
    burst(world, lasts_s=60.0)
    ray_words = ("Busy workers on node.", "Resource: GPU currently in use.")
    views = [
        _activity_text(Node(node_id="n", total={}, available={}, status=status, activity=words))
        for status, words in (
            (NodeStatus.RUNNING, ray_words),
            (NodeStatus.RUNNING, ray_words[:1]),
            (NodeStatus.RUNNING, ("Resource: GPU_group_1_ab currently in use.", ray_words[1])),
            (NodeStatus.RUNNING, ()),
            (NodeStatus.IDLE, ()),
        )
    ]
    world.run(65, until=lambda: nodes(world)["i-0001"].state == "idle")

    assert views == [
        "GPU in use",
        "a worker process runs",
        "GPU, placement group in use",
        "Ray does not call it idle yet",
        "",
    ]
    assert nodes(world)["i-0001"].why == ""


def test_a_dead_node_is_not_shown_and_its_death_is_written_down(world: World) -> None:
    burst(world)
    world.ray.kill(next(n for n in world.ray.nodes.values() if n.host == "host-0"))
    world.fleet.joined.discard("host-0")
    world.fleet.unreachable = {"host-0"}
    world.step()

    view = nodes(world)["host-0"]

    assert (view.state, view.gpus_used) == ("failed", None)
    assert "cannot be reached" in view.why
    assert "node_died" in world.kinds()


# --- alarms ---------------------------------------------------------------------------------


def test_each_trouble_has_an_alarm_that_keeps_its_first_instant(world: World) -> None:
    burst(world)
    world.head.is_up = False
    world.head.is_broken = True
    world.fleet.joined.discard("host-1")
    world.fleet.unreachable = {"host-1"}
    world.clouds["other"].is_silent = True
    world.clouds["sim"].failing = {"offers"}
    world.loop.book.apply(world.row(), Fact.LAUNCH_ACCEPTED)
    world.step()
    first = alarms(world)
    world.run(50)
    later = alarms(world)

    assert set(first) == {
        "head_down",
        "host_failed",
        "source_blind",
        "source_stale",
        "quarantined",
    }
    assert {c: a.since_at_s for c, a in later.items()} == {
        c: a.since_at_s for c, a in first.items()
    }


def test_work_that_can_never_run_is_an_alarm_and_its_job_says_why(world: World) -> None:
    world.run(20)
    job = world.desk.submit(JobSpec(entrypoint="true", gpus=99))
    world.ray.submit(1, {"GPU": 99.0}, 1.0, *cloud_only())
    world.run(5)
    row = world.ledger.job(job.job_id)
    assert row is not None
    world.ledger.save_job(
        row.model_copy(update={"state": JobState.SUBMITTED}), world.loop.book.event("job_submitted")
    )

    alarm = alarms(world)["never_runs"]
    (shown,) = world.desk.jobs().jobs

    assert alarm.subject == "99 GPU (site=cloud)"
    assert "the largest of all has 4 GPU" in alarm.what
    assert shown.message.startswith("waits: no node and no offer can hold 99 GPU")


def test_a_lost_instance_is_an_alarm(world: World) -> None:
    burst(world)
    world.loop.book.apply(world.row(), Fact.MISSING)

    assert "console" in alarms(world)["lost"].what


def test_an_alarm_that_comes_back_is_a_new_one(world: World) -> None:
    world.run(20)
    cloud = world.clouds["other"]
    seen = []
    for _ in range(2):
        cloud.failing = {"offers"}
        world.step()
        seen.append(alarms(world)["source_stale"].since_at_s)
        cloud.failing = set()
        world.step()
        assert alarms(world) == {}

    assert seen[0] < seen[1]


# --- cost -----------------------------------------------------------------------------------


def test_cost_adds_up_to_the_ledger_and_to_its_own_lines(world: World) -> None:
    burst(world, lasts_s=60.0)
    world.run(300, until=world.is_quiet)
    burst(world)
    world.run(50)

    view = world.desk.cost()

    booked = sum(s.usd for s in world.ledger.spends())
    running = sum(
        i.offer.usd_per_hour * (view.at_s - i.created_at_s) / 3600
        for i in world.ledger.live_instances()
    )
    assert view.total_usd == pytest.approx(booked + running)
    for lines in (view.by_provider, view.by_reason):
        assert sum(line.usd for line in lines) == pytest.approx(view.total_usd)
        assert sum(line.instance_count for line in lines) == 2
    assert sum(i.cost_usd for i in view.instances) == pytest.approx(view.total_usd)
    assert view.running_usd_per_hour == 2.0
    assert {line.busy_usd for line in view.by_provider} == {None}, "not measured is not zero"


def test_cost_since_an_instant_counts_the_part_after_it(world: World) -> None:
    burst(world)
    start_s = world.clock.now_s()
    world.run(3600)

    view = world.desk.cost(since_s=start_s)

    assert view.total_usd == pytest.approx(2.0, rel=0.01)
    assert world.desk.cost().total_usd > view.total_usd


def test_the_day_of_the_budget_and_the_cost_agree(world: World) -> None:
    burst(world, lasts_s=60.0)
    world.run(300, until=world.is_quiet)
    world.step()

    assert world.loop.commitment.day_usd == pytest.approx(world.desk.cost().total_usd)


def test_spent_and_today_are_one_number_also_between_two_ticks(world: World) -> None:
    burst(world)
    world.clock.advance(3.0)

    view = world.desk.cost()

    assert view.total_usd == view.budget.now.day_usd == view.budget.now.month_usd


def test_an_instance_that_ends_between_two_reads_is_counted_once(world: World) -> None:
    burst(world, lasts_s=30.0)
    stale = world.ledger.live_instances()
    world.run(300, until=world.is_quiet)
    spends: list[Spend] = list(world.ledger.spends())
    world.desk.ledger = _StaleLedger(world, stale)  # type: ignore[assignment]

    view = world.desk.cost()

    assert view.total_usd == pytest.approx(sum(s.usd for s in spends))


class _StaleLedger:
    """Says what was alive a moment ago."""

    def __init__(self, world: World, stale: object) -> None:
        self._ledger, self._stale = world.ledger, stale

    def live_instances(self) -> object:
        return self._stale

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)


def test_live_instances_beyond_the_newest_thousand_still_cost(fast_path: Path) -> None:
    world = World(fast_path, params=quick_params(), step_s=STEP_S, store=MemoryStore())
    burst(world)
    template = world.row()
    for number in range(1005):
        row = template.model_copy(
            update={
                "instance_id": f"i-old-{number:04d}",
                "state": S.REQUESTED,
                "created_at_s": world.clock.now_s() + 1,
            }
        )
        world.ledger.request(row, caps=Caps(), exit_s=0.0, now_s=world.clock.now_s())
        world.ledger.save(
            row.model_copy(update={"state": S.FAILED, "ended_at_s": world.clock.now_s()})
        )

    view = world.desk.cost()

    assert view.running_usd_per_hour == 2.0
    assert view.total_usd > 0


# --- the rest -------------------------------------------------------------------------------


def test_instances_events_jobs_and_plan_are_read_from_the_ledger(world: World) -> None:
    burst(world)
    job = world.desk.submit(JobSpec(entrypoint="true"))
    world.run(10)

    assert [i.instance_id for i in world.desk.instances().instances] == ["i-0001"]
    assert world.desk.jobs().jobs[0].job_id == job.job_id
    assert status(world).jobs.running == 1
    assert world.desk.plan().at_s is not None
    page = world.desk.events(limit=3)
    rest = world.desk.events(after_seq=page.next_seq)
    assert len(page.events) == 3
    assert rest.events == ()
    assert rest.next_seq == page.next_seq
    assert {e.subject for e in world.desk.events(subject="i-0001").events} == {"i-0001"}
    assert world.desk.config() == {}
    assert world.desk.nodes().nodes

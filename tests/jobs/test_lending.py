"""A service that borrows GPUs of batch work on a cluster: on a breach, and back after the peak."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hybrid.control.slo import SloWatch, Watched
from hybrid.core.models import Job, JobSpec, JobState, SavedWork
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.slo import Judgement, Load, Slo, SloState
from tests.world.quick import STEP_S, roomy_params
from tests.world.ray import Task
from tests.world.world import World

S = JobState
SAVES = SavedWork(url="s3://bucket/run", save_s=5.0, load_s=5.0)
JOBS = JobParams(rent_after_s=10_000.0, min_run_s=20.0, pinned_run_s=20.0, guard_s=5.0)
GPU = {"GPU": 1.0}
SLO = Slo(target_ms=1_000)


@dataclass
class Service:
    """Ray Serve with one application: it starts what it wants, and tells how it is.

    Attributes:
        wanted: Replicas that it asks for.
        state: Of its promise.
        is_deaf: It asks for nothing, however slow it is.
        garbage: A rate and a number of requests that it tells instead.
    """

    world: World
    wanted: int = 1
    state: SloState = SloState.MET
    is_deaf: bool = False
    garbage: tuple[float | None, float | None] | None = None
    replicas: list[Task] = field(default_factory=list)

    def step(self) -> None:
        if self.is_deaf:
            return
        while len(self.replicas) < self.wanted:
            self.replicas += self.world.ray.submit(1, GPU, 1e9)
        for replica in self.replicas[self.wanted :]:
            self.world.ray.tasks.remove(replica)
        del self.replicas[self.wanted :]

    def judge(self) -> tuple[Judgement, Load]:
        running = sum(bool(replica.node_id) for replica in self.replicas)
        is_broken = self.state is SloState.BROKEN
        judgement = Judgement(
            self.state,
            since_s=0.0,
            value_ms=1_500 if is_broken else 300,
            why="as it is",
            rate_rps=None if self.state is SloState.UNKNOWN else 10.0 * running,
            known_state=self.state,
        )
        if self.state is SloState.MET:
            judgement = Judgement(
                self.state, 0.0, 300.0, "fine", rate_rps=5.0, known_state=SloState.MET
            )
        load = Load(running, self.wanted, 400.0 if is_broken else 1.0)
        if self.garbage is not None:
            rate, in_system = self.garbage
            return replace(judgement, rate_rps=rate), replace(load, in_system=in_system)
        return judgement, load

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds // STEP_S)):
            self.step()
            self.world.run(STEP_S)

    @property
    def running(self) -> int:
        return sum(bool(replica.node_id) for replica in self.replicas)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two hosts with 4 GPUs each, and a cloud whose nodes nobody waits for."""
    params = roomy_params()
    policy = params.policy.model_copy(update={"jobs": JOBS, "max_wait_s": 10_000.0})
    world = World(tmp_path, params=params.model_copy(update={"policy": policy}), step_s=STEP_S)
    world.run(2 * STEP_S)
    return world


def serve(world: World, *, borrow: int = 2, most: int = 8) -> Service:
    """Return a service with one replica at home."""
    service = Service(world)
    watched = Watched(
        name="chat",
        app="chat",
        deployment="",
        slo=SLO,
        shape=GPU,
        most_count=most,
        judge=service.judge,
        borrow_count=borrow,
    )
    world.loop.slo = SloWatch([watched], world.clock, world.loop.book.record)
    service.run(20)
    return service


def batch(world: World, gpus: float, **changes: object) -> Job:
    """Return a job that runs at home for long."""
    values = {"entrypoint": "python train.py", "gpus": gpus, "checkpoint": SAVES}
    one = world.desk.submit(JobSpec.model_validate({**values, "max_wait_s": 86_400.0, **changes}))
    world.jobs.lasts_s[one.job_id] = 100_000.0
    world.run(60, until=lambda: state(world, one) is S.RUNNING)
    return one


def state(world: World, of: Job) -> JobState:
    return world.desk.job(of.job_id).state


def kinds(world: World, of: Job) -> list[str]:
    return [event.kind for event in world.ledger.events(subject=of.job_id)]


def loans(world: World) -> int:
    world.desk.publish()
    (view,) = world.desk.status().services
    return view.loan_count


def test_a_breach_borrows_before_it_rents_and_the_work_returns_after_the_peak(
    world: World,
) -> None:
    service = serve(world, most=3)
    lender, stays = batch(world, 3), batch(world, 4, priority=80)

    service.state, service.wanted = SloState.BROKEN, 3
    service.run(120)

    assert service.running == 3
    assert state(world, lender) is S.QUEUED
    assert state(world, stays) is S.RUNNING
    assert world.rows() == [], "GPUs at home were enough"
    assert loans(world) == 2
    assert "loan_begun" in world.kinds()
    assert "job_suspend_asked" in kinds(world, lender)
    said = [event.message for event in world.ledger.events(subject=lender.job_id)]
    assert "its GPUs are lent to the service chat" in said

    service.state, service.wanted = SloState.MET, 1
    service.run(600)

    assert loans(world) == 0
    assert state(world, lender) is S.RUNNING
    assert world.desk.job(lender.job_id).suspensions == 1
    assert world.desk.job(lender.job_id).progress_s > 0


def test_what_loans_cannot_give_is_rented(world: World) -> None:
    service = serve(world, borrow=1, most=3)
    lender = batch(world, 3)
    batch(world, 4, priority=80)

    service.state, service.wanted = SloState.BROKEN, 3
    service.run(200)

    assert service.running == 3
    assert state(world, lender) is S.QUEUED
    assert loans(world) == 1
    (row,) = world.rows()
    assert row.reason.code == "slo_breach"


def test_without_leave_to_borrow_nobody_is_stopped(world: World) -> None:
    service = serve(world, borrow=0)
    runs = batch(world, 3), batch(world, 4)

    service.state, service.wanted = SloState.BROKEN, 3
    service.run(120)

    assert [state(world, one) for one in runs] == [S.RUNNING, S.RUNNING]


def test_metrics_that_are_lost_give_nothing_back(world: World) -> None:
    service = serve(world)
    lender = batch(world, 3)
    batch(world, 4, priority=80)
    service.state, service.wanted = SloState.BROKEN, 3
    service.run(120)

    service.state = SloState.UNKNOWN
    service.run(1_200)

    assert loans(world) == 2
    assert service.running == 3
    assert state(world, lender) is S.QUEUED


def test_metrics_that_were_never_there_borrow_nothing(world: World) -> None:
    service = serve(world)
    lender = batch(world, 3)
    batch(world, 4, priority=80)

    service.state, service.wanted = SloState.UNKNOWN, 3
    service.run(300)

    assert state(world, lender) is S.RUNNING
    assert loans(world) == 0


def test_what_serve_never_asks_for_is_given_back_and_not_borrowed_again(world: World) -> None:
    service = serve(world)
    lender = batch(world, 3)
    batch(world, 4, priority=80)

    service.state, service.is_deaf = SloState.BROKEN, True
    service.run(600)

    assert loans(world) == 0
    assert state(world, lender) is S.RUNNING
    assert world.desk.job(lender.job_id).suspensions <= 1
    assert world.kinds().count("loan_begun") == 1


def test_a_job_that_does_not_save_keeps_its_gpus(world: World) -> None:
    service = serve(world)
    deaf = batch(world, 3)
    world.jobs.deaf.add(deaf.job_id)
    batch(world, 4, priority=80)

    service.state, service.wanted = SloState.BROKEN, 3
    service.run(300)

    assert state(world, deaf) is S.RUNNING
    assert world.desk.job(deaf.job_id).is_deaf
    assert kinds(world, deaf).count("job_suspend_asked") == 1
    assert service.running == 3, "what nobody lends is rented"


_NAN, _INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("rate", "in_system"),
    [(None, None), (_NAN, _NAN), (_INF, 1e300), (1e300, _INF), (-5, -5), (10, _NAN), (0, _INF)],
)
def test_garbage_in_metrics_neither_crashes_nor_borrows_more_than_may_be(
    world: World, rate: float | None, in_system: float | None
) -> None:
    service = serve(world)
    batch(world, 3)
    service.state, service.wanted = SloState.BROKEN, 3
    service.garbage = (rate, in_system)

    service.run(60)

    assert loans(world) <= 2


def test_a_controller_that_starts_again_stops_nobody_else(world: World) -> None:
    service = serve(world, most=3)
    lender, stays = batch(world, 3), batch(world, 4)
    service.state, service.wanted = SloState.BROKEN, 3
    service.run(60)

    again = world.loop.slo
    world.loop.slo = SloWatch(again._services, world.clock, world.loop.book.record)
    service.run(120)

    assert [state(world, lender), state(world, stays)] != [S.QUEUED, S.QUEUED]
    assert service.running == 3

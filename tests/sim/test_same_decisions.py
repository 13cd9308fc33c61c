"""The controller and the simulator decide alike: what one has seen, the other decides the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hybrid
from hybrid.adapters.decision_files import DecisionFiles
from hybrid.control import loop
from hybrid.core.models import JobClass, JobSpec, SavedWork
from hybrid.core.models.work import JobView
from hybrid.core.policy.decide import decide
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.plan import Action, Launch, Plan, Snapshot
from hybrid.sim import policies
from hybrid.sim.engine import Engine
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Reservoir
from hybrid.sim.recorded import replay
from hybrid.sim.recorded.reading import RecordFiles
from tests.sim.watched import random_trace
from tests.world.quick import STEP_S, quick_params, roomy_params
from tests.world.world import World

ROOT = Path(hybrid.__file__).parent
ACTIONS = {"Launch", "Drain", "Terminate", "Start", "Suspend", "Move"}


def test_there_is_one_function() -> None:
    assert vars(loop)["decide"] is decide
    assert vars(policies)["decide"] is decide
    assert vars(replay)["decide"] is decide


def makers() -> set[str]:
    """Return the modules outside of the policy that make actions of a plan."""
    found = set()
    for path in ROOT.rglob("*.py"):
        module = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text())
        actions = {
            alias.asname or alias.name
            for each in ast.walk(tree)
            if isinstance(each, ast.ImportFrom) and each.module == "hybrid.core.policy.plan"
            for alias in each.names
            if alias.name in ACTIONS
        }
        calls = [each.func for each in ast.walk(tree) if isinstance(each, ast.Call)]
        names = {each.id for each in calls if isinstance(each, ast.Name)}
        if actions & names and not module.startswith("core/policy/"):
            found.add(module)
    return found


def test_nothing_but_the_policy_makes_actions() -> None:
    """Baselines are other policies, for the simulator only."""
    assert makers() == {"sim/baselines/acting.py"}


@pytest.mark.slow
def test_what_a_live_controller_saw_is_decided_alike_in_the_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole burst, from the first wait to the last node: each look as it could be stored."""
    params = quick_params()
    seen: list[tuple[str, Plan]] = []

    def watched(snapshot: Snapshot, policy: object) -> Plan:
        assert policy is params.policy
        plan = decide(snapshot, params.policy)
        seen.append((snapshot.model_dump_json(), plan))
        return plan

    monkeypatch.setattr(loop, "decide", watched)
    world = World(tmp_path, params=params)
    world.ray.submit(12, {"GPU": 1.0}, 60.0)
    world.run(400)

    simulator = Reservoir("as live", params.policy)
    for text, plan in seen:
        assert tuple(simulator.decide(Snapshot.model_validate_json(text))) == plan.actions
    kinds = {action.kind for _, plan in seen for action in plan.actions}
    assert kinds >= {"launch", "drain"}


def jobs_of_all_kinds(world: World) -> None:
    """Let jobs of the queue start, wait, give way, come home, fail and be cancelled.

    Home has 8 GPUs, and a rented node 4.
    """
    saves = SavedWork(url="s3://bucket/run", save_s=5.0, load_s=5.0)

    def submit(job_id: str, lasts_s: float, **changes: object) -> None:
        values = {"entrypoint": "python train.py", "gpus": 4.0, **changes}
        world.jobs.lasts_s[job_id] = lasts_s
        world.desk.submit(JobSpec.model_validate(values), job_id=job_id)

    submit("pinned", 200.0)
    submit("second", 1e9)
    world.run(20)
    submit("far", 150.0, checkpoint=saves, retries=2)
    submit("never", 40.0, gpus=64.0)
    world.run(80)
    world.desk.cancel("second")
    world.run(100)
    submit("filler", 200.0, job_class=JobClass.BEST_EFFORT)
    submit("low", 200.0, checkpoint=saves, priority=1)
    world.run(40)
    submit("urgent", 40.0, priority=90, site="onprem")
    submit("gang", 40.0, nodes=2, job_class=JobClass.LONG)
    world.run(60)
    world.desk.cancel("never")
    world.run(900, until=lambda: all(job.state.is_ended for job in world.ledger.jobs()))


def kind_of(job: JobView) -> str:
    return "running" if job.slots else "suspended" if job.is_started else "queued"


@pytest.mark.slow
def test_what_a_live_controller_saw_of_jobs_is_decided_alike_in_the_simulator(
    tmp_path: Path,
) -> None:
    """Through the very files that a controller keeps, with jobs that wait, run and are stopped."""
    params = roomy_params()
    quick = JobParams(rent_after_s=10.0, min_run_s=20.0, pinned_run_s=20.0, guard_s=5.0)
    policy = params.policy.model_copy(update={"jobs": quick})
    world = World(tmp_path, params=params.model_copy(update={"policy": policy}), step_s=STEP_S)
    files = DecisionFiles(
        tmp_path / "decisions", version=hybrid.__version__, kept_s=86_400.0, pause_s=0.0
    )
    world.loop.recorder = files
    tick = world.tick

    def recorded_tick() -> None:
        tick()
        while files._queue.qsize() > 4:  # in this world no time passes between two ticks
            pass

    world.tick = recorded_tick  # type: ignore[method-assign]
    jobs_of_all_kinds(world)
    files.close()

    found = list(RecordFiles.at(tmp_path / "decisions").each())
    simulator = Reservoir("as live", policy)
    for each in found:
        assert each.params == policy
        assert tuple(simulator.decide(each.decision.snapshot)) == each.decision.plan.actions
    seen = {kind_of(job) for each in found for job in each.decision.snapshot.jobs}
    assert seen == {"queued", "running", "suspended"}
    done = {action.kind for each in found for action in each.decision.plan.actions}
    assert done >= {"start", "suspend", "move", "launch", "drain"}
    assert {job.job_id: job.state.value for job in world.ledger.jobs()} == {
        **dict.fromkeys(("pinned", "filler", "low", "urgent", "gang", "far"), "succeeded"),
        **dict.fromkeys(("second", "never"), "cancelled"),
    }


@pytest.mark.slow
def test_what_the_simulator_shows_can_be_stored_and_decided_alike() -> None:
    shown: list[tuple[str, Plan]] = []
    policy = Reservoir.of("balanced")

    class Watched(Reservoir):
        def decide(self, snapshot: Snapshot) -> tuple[Action, ...]:
            plan = decide(snapshot, policy.params)
            shown.append((snapshot.model_dump_json(), plan))
            return plan.actions

    trace = random_trace(1, count=40, most_gpus=16)
    Engine(trace, SimParams(gpus=16), Watched("watched", policy.params)).run()

    assert any(isinstance(action, Launch) for _, plan in shown for action in plan.actions)
    for text, plan in shown:
        assert decide(Snapshot.model_validate_json(text), policy.params) == plan

"""The controller and the simulator decide alike: what one has seen, the other decides the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hybrid
from hybrid.control import loop
from hybrid.core.policy.decide import decide
from hybrid.core.policy.plan import Action, Launch, Plan, Snapshot
from hybrid.sim import policies
from hybrid.sim.engine import Engine
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Reservoir
from hybrid.sim.recorded import replay
from tests.sim.watched import random_trace
from tests.world.quick import quick_params
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

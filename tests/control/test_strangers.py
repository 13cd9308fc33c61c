"""Whose machine is it: random accounts full of strangers, twins, orphans and our own.

Item 6 of the reliability contract. What does not carry exactly our tags is never ended; what
carries them and is nobody's is gone within a bounded time; what is ours lives.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hybrid.core.models import Caps, InstanceState, LaunchSpec
from tests.world.cloud import Machine
from tests.world.quick import STEP_S, quick_params
from tests.world.world import World, make_offer, stranger_spec

GPU = {"GPU": 1.0}
S = InstanceState
SEEDS = range(30)


@dataclass
class Account:
    """A cloud account that several clusters use, and what happens in it.

    Attributes:
        foreign: Machines of others, some with names much like ours.
        orphans: Machines with our tags that are in no ledger, by when they came.
    """

    world: World
    rng: random.Random
    foreign: list[Machine] = field(default_factory=list)
    orphans: list[Machine] = field(default_factory=list)

    def misfortune(self) -> None:
        act = self.rng.choice([self.stranger, self.orphan, self.hide, self.fail, self.crash])
        act()

    def stranger(self) -> None:
        ours = self.world.ledger.cluster_id
        known = [row.instance_id for row in self.world.rows()] or ["i-0001"]
        owner = self.rng.choice(["c-other", "", ours + "2", ours[:-1], ours.upper(), f" {ours}"])
        spec = stranger_spec(self.world, self.rng.choice([*known, "i-9999"]))
        spec = spec.model_copy(update={"cluster_id": owner, "expires_at_s": 3e9})
        self.foreign.append(self._create(spec))

    def orphan(self) -> None:
        if sum(self.world.cloud.is_alive(m) for m in self.orphans) < 2:
            spec = stranger_spec(self.world, f"i-orphan-{len(self.orphans)}")
            self.orphans.append(self._create(spec))

    def _create(self, spec: LaunchSpec) -> Machine:
        machine = self.world.cloud.create(make_offer(), spec)
        machine.launched_at_s -= self.rng.choice([0.0, 5.0, 1e5, -3600.0])
        machine.never_joins = True
        return machine

    def hide(self) -> None:
        for machine in self.world.cloud.alive():
            machine.hidden_lists = self.rng.randint(0, 3)

    def fail(self) -> None:
        self.world.cloud.failing = set(
            self.rng.sample(["list", "terminate", "extend"], self.rng.randint(0, 1))
        )

    def crash(self) -> None:
        self.world.boot()


def make_world(folder: Path) -> World:
    world = World(folder, params=quick_params(), step_s=STEP_S)
    # The world's own checks count every machine of the account: caps hold only what we launch.
    world.params = quick_params(caps=Caps())
    world.cloud.boot_s, world.cloud.list_lag_s = 10.0, 15.0
    world.cloud.cluster_id = world.ledger.cluster_id
    return world


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_only_what_carries_exactly_our_tags_and_is_nobodys_is_ended(
    fast_path: Path, seed: int
) -> None:
    world = make_world(fast_path)
    account = Account(world, random.Random(seed))
    world.ray.submit(8, GPU, 1e6)
    tasks = world.ray.submit(4, GPU, 800.0)
    world.run(100, until=lambda: any(r.state is S.RUNNING for r in world.rows()))
    [mine] = world.cloud.machines.values()
    for _ in range(20):
        account.misfortune()
        world.run(account.rng.choice([STEP_S, 20.0]))

    world.cloud.failing = set()
    world.run(2 * world.params.orphan_grace_s + 90)

    assert all(m.ended_by != "terminate" for m in account.foreign)
    assert all(m.ended_by in ("terminate", "lease") for m in account.orphans)
    assert mine.ended_by == ""
    assert all(task.deaths == 0 for task in tasks)
    assert account.foreign or account.orphans


def test_gc_asked_by_a_person_touches_no_stranger_either(
    fast_path: Path,
) -> None:
    world = make_world(fast_path)
    account = Account(world, random.Random(1))
    for _ in range(6):
        account.stranger()
    account.orphan()
    world.run(60)

    world.desk.gc(is_dry_run=False)

    assert all(m.ended_by == "" for m in account.foreign)
    assert [m.ended_by for m in account.orphans] == ["terminate"]

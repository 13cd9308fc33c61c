"""Bad luck by the dozen: random faults for a while, then peace, and everything must come right."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    HybridError,
    ProviderError,
    QuotaError,
    ThrottledError,
    TransientError,
)
from hybrid.core.models import InstanceState, JobSpec, JobState
from hybrid.core.ports import Mode
from tests.world.history import fault_of, tell
from tests.world.ledgers import fast_folder
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.ray import all_done
from tests.world.trace import Crash, Point
from tests.world.world import World, two_clouds

GPU = {"GPU": 1.0}
LAUNCH_FAULTS: tuple[ProviderError | str, ...] = (
    "lost",
    "lost",
    "fails_later",
    CapacityError("sold out", provider="sim"),
    QuotaError("quota", provider="sim"),
    ThrottledError("slow down", provider="sim"),
    TransientError("no answer", provider="sim"),
    AuthError("who are you", provider="sim"),
)


@dataclass
class Chaos:
    """One random history.

    Attributes:
        log: What was done to the world, for the message of a failed test.
        told: All that the ledger says in the end.
        deaths: Machines and nodes that died by themselves: their work may die with them.
    """

    seed: int
    step_count: int = 120
    is_on_disk: bool = False
    log: list[str] = field(default_factory=list)
    deaths: int = 0
    told: object = None

    def run(self) -> World:
        """Play the history; raise `AssertionError` when a promise is broken."""
        with fast_folder() as folder:
            try:
                return self._run(folder)
            except AssertionError as error:
                raise AssertionError(
                    f"seed {self.seed}: {error}\n" + "\n".join(self.log)
                ) from error

    def _run(self, folder: Path) -> World:
        self.rng = random.Random(self.seed)
        self.world = world = World(
            folder,
            params=quick_params(),
            offers=list(two_clouds()),
            step_s=STEP_S,
            may_fail=True,
            is_calling=self.seed % 2 == 1,
            store=None if self.is_on_disk else MemoryStore(),
        )
        for cloud in world.clouds.values():
            cloud.boot_s, cloud.list_lag_s = 10.0, 30.0
            cloud.shares_head_clock = True
        for _ in range(self.step_count):
            self._step()
        self._peace()
        tasks = world.ray.tasks
        world.run(2500, until=all_done(tasks))
        world.run(2500, until=world.is_quiet)
        world.run(10)
        self._end_jobs()
        world.run(10)
        world.assert_nothing_left()
        is_lapsed = any(m.ended_by == "lease" for m in world.machines())
        if not self.deaths and not is_lapsed:
            assert sum(t.deaths for t in tasks) == len(world.ray.killed_busy) == 0
        assert all(job.state.is_ended for job in world.ledger.jobs())
        assert all(count == 1 for count in world.jobs.starts.values()), "a job started twice"
        self.told = tell(world)
        world.ledger.close()
        return world

    def _step(self) -> None:
        world = self.world
        try:
            self._misfortune()
            world.step()
        except Crash:
            self._say("the controller crashed")
            world.sleep(self.rng.choice([0, 5, 60, 200]))
            world.boot()

    def _say(self, text: str) -> None:
        self.log.append(f"{self.world.clock.monotonic_s() - 1000:.0f} s: {text}")

    def _misfortune(self) -> None:
        for chance, act in self._acts():
            if self.rng.random() < chance:
                try:
                    act()
                except HybridError as error:
                    self._say(f"refused: {error}")

    def _acts(self) -> list[tuple[float, Callable[[], None]]]:
        return [
            (0.15, self._work),
            (0.03, self._job),
            (0.06, self._crash),
            (0.06, self._fail_a_call),
            (0.10, self._toggle_cloud),
            (0.06, self._toggle_ray),
            (0.08, self._spoil_launches),
            (0.03, self._kill),
            (0.04, self._operate),
            (0.02, self._jump),
        ]

    # --- what can happen --------------------------------------------------------------------

    def _work(self) -> None:
        count, lasts_s = self.rng.randint(1, 8), self.rng.choice([10.0, 40.0, 150.0])
        self._say(f"{count} tasks of {lasts_s:.0f} s")
        self.world.ray.submit(count, GPU, lasts_s)

    def _job(self) -> None:
        job = self.world.desk.submit(JobSpec(entrypoint="true"))
        self._say(f"job {job.job_id}")

    def _crash(self) -> None:
        def crash() -> None:
            raise Crash

        self._at_random(crash, "crash")

    def _fail_a_call(self) -> None:
        number = self.world.tracer.count + self.rng.randint(0, 60)

        def fail(point: Point) -> None:
            if point.number >= number and point.call not in ("set_mode", "acquire"):
                self.world.tracer.hook = None
                self._say(f"failed: {point}")
                raise fault_of(point)

        self.world.tracer.hook = fail

    def _at_random(self, act: Callable[[], None], what: str) -> None:
        number = self.world.tracer.count + self.rng.randint(0, 60)
        self._say(f"{what} at point {number}")
        self.world.tracer.at(number, act)

    def _toggle_cloud(self) -> None:
        cloud = self.rng.choice(list(self.world.clouds.values()))
        what = self.rng.randint(0, 6)
        if what == 0:
            cloud.is_silent = not cloud.is_silent
        elif what == 1:
            calls = ["list", "offers", "launch", "terminate", "extend"]
            cloud.failing = set(self.rng.sample(calls, self.rng.randint(0, 3)))
        elif what == 2:
            cloud.hide_lists = self.rng.choice([0, 1, 4])
        elif what == 3:
            cloud.ends_slowly_s = self.rng.choice([0.0, 20.0, 90.0])
        elif what == 4:
            cloud.never_joins = not cloud.never_joins
        elif what == 5:
            cloud.forgets_ended = not cloud.forgets_ended
        else:
            cloud.stock = self.rng.choice([0, 1, 1000])
        self._say(
            f"{cloud.name}: silent {cloud.is_silent}, failing {sorted(cloud.failing)}, hides "
            f"{cloud.hide_lists}, ends in {cloud.ends_slowly_s}, never joins {cloud.never_joins}, "
            f"forgets {cloud.forgets_ended}, stock {cloud.stock}"
        )

    def _toggle_ray(self) -> None:
        ray = self.world.ray
        ray.is_silent = self.rng.random() < 0.3
        ray.is_deaf = self.rng.random() < 0.3
        ray.answers_get_lost = self.rng.random() < 0.3
        self.world.jobs.is_silent = self.rng.random() < 0.3
        self._say(f"ray: silent {ray.is_silent}, deaf {ray.is_deaf}, loses {ray.answers_get_lost}")

    def _spoil_launches(self) -> None:
        cloud = self.rng.choice(list(self.world.clouds.values()))
        faults = [self.rng.choice(LAUNCH_FAULTS) for _ in range(self.rng.randint(1, 3))]
        cloud.launch_faults += faults
        self._say(f"{cloud.name}: next launches {[str(f) for f in faults]}")

    def _kill(self) -> None:
        self.deaths += 1
        machines, what = self.world.alive(), self.rng.randint(0, 2)
        if what == 0 and machines:
            machine = self.rng.choice(machines)
            self._say(f"the cloud ends {machine.provider_id}")
            self.world.clouds[machine.offer.provider].kill(machine, "reclaimed")
        elif what == 1:
            nodes = [n for n in self.world.ray.nodes.values() if n.instance_id and not n.is_dead]
            if nodes:
                node = self.rng.choice(nodes)
                self._say(f"the node of {node.instance_id} dies")
                self.world.ray.kill(node)
        else:
            self._say("host-0 dies")
            self.world.fleet.joined.discard("host-0")
            for node in self.world.ray.nodes.values():
                if node.host == "host-0" and not node.is_dead:
                    self.world.ray.kill(node)

    def _operate(self) -> None:
        desk, what = self.world.desk, self.rng.randint(0, 3)
        running = [r for r in self.world.rows() if r.state is InstanceState.RUNNING]
        if what == 0 and running:
            self._say(f"drain {running[0].instance_id}")
            self.deaths += 1  # its work may be ended at the deadline
            desk.drain(running[0].instance_id, deadline_s=60.0, owner="chaos")
        elif what == 1:
            direction = self.rng.choice(["in", "out", "all", "dry-run"])
            self._say(f"pause {direction}")
            desk.pause(direction, owner="chaos")
        elif what == 2:
            self._say("resume")
            desk.resume("all", owner="chaos")
            desk.resume("dry-run", owner="chaos")
        else:
            self._say("gc")
            desk.gc(is_dry_run=False)

    def _jump(self) -> None:
        by_s = self.rng.choice([3600.0, -3600.0, 20.0, -20.0])
        self._say(f"the clock jumps by {by_s:.0f} s")
        self.world.clock.jump(by_s)

    def _peace(self) -> None:
        world = self.world
        self._say("peace")
        world.tracer.hook = None
        world.ledger.set_mode(Mode())
        for cloud in world.clouds.values():
            cloud.is_silent, cloud.failing, cloud.launch_faults = False, set(), []
            cloud.hide_lists, cloud.ends_slowly_s, cloud.never_joins = 0, 0.0, False
            cloud.stock = 1000
        world.ray.is_silent = world.ray.is_deaf = world.ray.answers_get_lost = False
        world.jobs.is_silent = False
        world.may_fail = False

    def _end_jobs(self) -> None:
        """The drivers are done."""
        for job_id, state in self.world.jobs.states.items():
            if not state.is_ended:
                self.world.jobs.states[job_id] = JobState.SUCCEEDED

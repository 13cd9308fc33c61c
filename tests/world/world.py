"""The whole: a controller made of the real loop, the real policy and the real ledger."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hybrid.control.act import Actor
from hybrid.control.base import Base
from hybrid.control.book import Book
from hybrid.control.calling import CalledProvider
from hybrid.control.closing import Closer
from hybrid.control.clouds import Clouds
from hybrid.control.desk import Desk
from hybrid.control.finish import Finisher
from hybrid.control.launching import Launcher
from hybrid.control.loop import Loop
from hybrid.control.mailbox import Mailbox
from hybrid.control.observe import RayEye, Reconciler
from hybrid.control.params import ClusterFacts, ControlParams
from hybrid.control.resting import Resting
from hybrid.control.steady import SteadyClock
from hybrid.core.cost import day_start_s
from hybrid.core.errors import FencedError, HybridError, LedgerError
from hybrid.core.lifecycle import Deadlines
from hybrid.core.models import Caps, Instance, InstanceState, LaunchSpec, Offer
from hybrid.core.policy.params import PolicyParams
from hybrid.core.ports import Ledger, Provider
from hybrid.core.views import ClusterInfo
from hybrid.jobs.dispatch import Dispatcher
from tests.world.base import SimFleet, SimHead, SimJobLogs, SimJobs, SimPackages
from tests.world.clock import VirtualClock
from tests.world.cloud import Machine, SimCloud
from tests.world.ledgers import open_world_ledger
from tests.world.memory import MemoryLedger, MemoryStore
from tests.world.ray import SimNode, SimRay
from tests.world.trace import Tracer

_T = TypeVar("_T")
SECRET = b"secret"


def make_offer(**changes: object) -> Offer:
    values: dict[str, object] = {
        "offer_id": "sim/a4",
        "provider": "sim",
        "instance_type": "a4",
        "shape": {"GPU": 4.0, "CPU": 8.0},
        "gpu_count": 4,
        "usd_per_hour": 2.0,
        "boot_s": 30.0,
    }
    return Offer.model_validate({**values, **changes})


def make_params(**policy: object) -> ControlParams:
    return ControlParams(
        tick_s=1.0,
        lease_s=600.0,
        renew_s=120.0,
        orphan_grace_s=20.0,
        proof_s=60.0,
        retry_s=1.0,
        deadlines=Deadlines(launch_s=60, join_s=120, drain_s=100, idle_drain_s=20, terminate_s=60),
        caps=Caps(node_count=4, gpu_count=16, usd_per_hour=10.0, usd_per_day=100.0),
        policy=PolicyParams.model_validate(
            {
                "max_wait_s": 10.0,
                "stabilisation_s": 2.0,
                "idle_after_s": 30.0,
                "min_life_s": 40.0,
                "boot_life_ratio": 1.0,
                "drain_s": 100.0,
                "exit_margin_s": 20.0,
                **policy,
            }
        ),
    )


class DirectMailbox(Mailbox):
    """Runs each request at once: tests have one thread, and ask between two ticks."""

    def ask(self, call: Callable[[], _T], *, timeout_s: float = 30.0) -> _T:
        return call()


@dataclass
class Controller:
    """One controller process."""

    ledger: Ledger
    loop: Loop
    desk: Desk


@dataclass
class World:
    """One cluster, its clouds and its controller, which can crash and come back.

    Attributes:
        store: A ledger in memory instead of the real one in `folder`.
        tracer: Numbers every call the controller makes.
        jump_before: By how much the wall clock is set before which tick.
        is_calling: The retry engine and the call limits are between the loop and the clouds.
        removed: Providers that are no longer in the configuration at the next boot.
        is_base_traced: Calls to the head and the hosts are points, too.
        may_kill_busy: The test expects work to be killed by us.
        may_fail: Ticks may fail for want of a ledger.
        controllers: All there ever were; the last one is meant by `loop` and `desk`.
    """

    folder: Path
    params: ControlParams = field(default_factory=make_params)
    offers: list[Offer] = field(default_factory=lambda: [make_offer()])
    clock: VirtualClock = field(default_factory=VirtualClock)
    host_count: int = 2
    step_s: float = 1.0
    store: MemoryStore | None = None
    tracer: Tracer = field(default_factory=Tracer)
    jump_before: dict[int, float] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    is_calling: bool = False
    is_base_traced: bool = False
    may_kill_busy: bool = False
    may_fail: bool = False
    failed_ticks: int = 0
    controllers: list[Controller] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = dict.fromkeys(offer.provider for offer in self.offers)
        self.clouds = {
            name: SimCloud(self.clock, [o for o in self.offers if o.provider == name], name=name)
            for name in names
        }
        self.cloud = self.clouds[next(iter(names))]
        self.ray = SimRay(self.clock)
        shapes = {f"host-{n}": {"GPU": 4.0, "CPU": 4.0} for n in range(self.host_count)}
        self.head = SimHead(self.ray)
        self.fleet = SimFleet(self.ray, dict(shapes))
        self.jobs = SimJobs(ray=self.ray)
        self.packages = SimPackages()
        self.job_logs = SimJobLogs()
        self.id_count = 0
        self.max_nodes = 0
        self.day_usd: dict[float, float] = {}
        self.deadlines: dict[str, float] = {}
        self.boot()

    # --- the controller -------------------------------------------------------------------

    @property
    def loop(self) -> Loop:
        return self.controllers[-1].loop

    @property
    def desk(self) -> Desk:
        return self.controllers[-1].desk

    @property
    def ledger(self) -> Ledger:
        return self.controllers[-1].ledger

    def boot(self, *, is_last_alive: bool = False) -> Controller:
        """Start a controller on the ledger.

        Args:
            is_last_alive: The one before is not dead, only slow.
        """
        if self.controllers and not is_last_alive:
            self.ledger.close()
        ledger = self._open_ledger()
        controller = self._make(ledger)
        self.controllers.append(controller)
        controller.loop.book.ledger.acquire("test", now_s=self.clock.now_s())
        controller.loop.start()
        return controller

    def _open_ledger(self) -> Ledger:
        if self.store is not None:
            return MemoryLedger(self.store)
        return open_world_ledger(self.folder)

    def _make(self, ledger: Ledger) -> Controller:
        owner = len(self.controllers)
        traced = self.tracer.wrap(ledger, "ledger", owner=owner)
        ray = self.tracer.wrap(self.ray, "ray", owner=owner)
        jobs = self.tracer.wrap(self.jobs, "jobs", owner=owner)
        head, fleet = self.head, self.fleet
        if self.is_base_traced:
            head = self.tracer.wrap(head, "head", owner=owner)
            fleet = self.tracer.wrap(fleet, "fleet", owner=owner)
        providers: list[Provider] = [
            self.tracer.wrap(cloud, name, owner=owner)
            for name, cloud in self.clouds.items()
            if name not in self.removed
        ]
        clock, params = SteadyClock(self.clock), self.params
        if self.is_calling:
            rng = random.Random(owner)
            check = traced.check_epoch
            providers = [CalledProvider(p, clock, rng, check=check) for p in providers]
        book = Book(traced, clock, params.deadlines)
        shapes = self.fleet.shapes
        base = Base(
            head,
            fleet,
            clock,
            shapes=dict(shapes),
            labels={name: {"site": "onprem"} for name in shapes},
        )
        clouds = Clouds(providers, clock, offers_every_s=0.0)
        eye = RayEye(ray, clock)
        launcher = Launcher(
            book=book,
            clouds=clouds,
            clock=clock,
            params=params,
            facts=ClusterFacts(
                name="test",
                cluster_id=ledger.cluster_id,
                head_address="127.0.0.1:1",
                controller_url="http://127.0.0.1:2",
                ray_version="2",
                python_version="3",
            ),
            new_id=self._new_id,
            secret=SECRET,
            resting=Resting(book, clock, params, random.Random(1)),
        )
        actor = Actor(book=book, cluster=ray, clock=clock, params=params, launcher=launcher)
        finisher = Finisher(book, clouds, actor, clock, params)
        dispatcher = Dispatcher(
            traced, jobs, self.packages, self.job_logs, clock, params.queue, params.policy.jobs
        )
        loop = Loop(
            book=book,
            base=base,
            clouds=clouds,
            ray=eye,
            reconciler=Reconciler(book, clouds, eye, clock, params),
            actor=actor,
            finisher=finisher,
            closer=Closer(book, clouds, actor, finisher, base, dispatcher, clock),
            jobs=dispatcher,
            clock=clock,
            params=params,
        )
        desk = Desk(
            loop=loop,
            ledger=ledger,
            runner=jobs,
            packages=self.packages,
            logs=self.job_logs,
            mailbox=DirectMailbox(),
            clock=clock,
            ray_token="ray-token",
            secret=SECRET,
            new_job_id=lambda: "job-" + self._new_id(),
            info=ClusterInfo(
                name="test",
                cluster_id=ledger.cluster_id,
                version="0",
                ray_version="2",
                python_version="3",
                started_at_s=clock.now_s(),
            ),
            settings={},
            pid=1,
        )
        return Controller(ledger, loop, desk)

    def _new_id(self) -> str:
        self.id_count += 1
        return f"i-{self.id_count:04d}"

    # --- time -----------------------------------------------------------------------------

    def step(self, *, is_controller_up: bool = True) -> None:
        """Let one step of time pass: the cloud boots, Ray works, the controller ticks."""
        self.clock.advance(self.step_s)
        self.sync(is_controller_up=is_controller_up)
        self.ray.step()
        self.jobs.step()
        if is_controller_up:
            self.tick()
        self.check()

    def tick(self) -> None:
        """Let the controller tick, and the world answer."""
        self.clock.jump(self.jump_before.pop(self.loop.tick_count, 0.0))
        self.desk.tick_started()
        try:
            self.loop.tick()
        except FencedError:
            raise
        except LedgerError:
            # As the runner does: the next tick starts from what is true then.
            self.failed_ticks += 1
            if not self.may_fail:
                raise
        self.sync()

    def run(self, seconds: float, *, until: Callable[[], bool] | None = None) -> float:
        """Step until `until` holds or time is over; return the seconds used."""
        used_s = 0.0
        while used_s < seconds:
            if until is not None and until():
                return used_s
            self.step()
            used_s += self.step_s
        if until is not None:
            assert until(), f"not reached in {seconds} s: {self.describe()}"
        return used_s

    def sleep(self, seconds: float) -> None:
        """Let time pass without a controller."""
        for _ in range(round(seconds / self.step_s)):
            self.step(is_controller_up=False)

    def sync(self, *, is_controller_up: bool = True) -> None:
        """Make nodes of booted machines, and kill nodes of ended ones."""
        for cloud in self.clouds.values():
            for machine in cloud.booted():
                if is_controller_up and not machine.has_joined:
                    self._join(machine)
        alive = {m.spec.instance_id for m in self.alive() if m.has_joined}
        for node in self.ray.nodes.values():
            if node.instance_id and node.instance_id not in alive and not node.is_dead:
                self._die_with_machine(node)

    def _join(self, machine: Machine) -> None:
        """A booted machine trades its token, as its node program does, and starts Ray."""
        name = machine.spec.instance_id
        try:
            token = self.desk.join(name, machine.join_token)
        except HybridError as error:
            machine.problem = f"join refused: {error}"
            return
        assert token == "ray-token"
        machine.has_joined = True
        self.ray.add(machine.offer.shape, machine.spec.labels, instance_id=name)

    def _die_with_machine(self, node: SimNode) -> None:
        if self.ray.on(node):
            self.ray.killed_busy.append(node.instance_id)
            last = next(m for m in self.machines_of(node.instance_id) if m.has_joined)
            if last.ended_by == "terminate" and not self._may_end(node):
                raise AssertionError(f"busy node of {node.instance_id} killed before its deadline")
        self.ray.kill(node)

    def _may_end(self, node: SimNode) -> bool:
        if self.may_kill_busy:
            return True
        mode = self.ledger.mode()
        if mode.is_closing and (mode.close_by_s or 0.0) <= self.loop.clock.now_s():
            return True
        # Ray knows the deadline, or, if it was deaf to the drain, only we do.
        ours_s = self.deadlines.get(node.instance_id)
        theirs_s = node.deadline_s
        return any(s is not None and self.clock.monotonic_s() >= s for s in (ours_s, theirs_s))

    def _note_deadlines(self) -> None:
        """Remember the deadlines of drains of busy nodes, by the clock that does not jump."""
        for row in self.loop.book.all():
            if row.drain_kind == "busy" and row.state is InstanceState.DRAINING:
                left_s = (row.deadline_at_s or 0.0) - self.loop.clock.now_s()
                due_s = self.clock.monotonic_s() + left_s
                self.deadlines.setdefault(row.instance_id, due_s)

    def check(self) -> None:
        """Hold the promises that must be true at each moment."""
        self._note_deadlines()
        alive = self.alive()
        caps = self.params.caps
        usd = sum(m.offer.usd_per_hour for m in alive)
        gpus = sum(m.offer.gpu_count for m in alive)
        assert caps.node_count is None or len(alive) <= caps.node_count, "node cap passed"
        assert caps.gpu_count is None or gpus <= caps.gpu_count, "gpu cap passed"
        assert caps.usd_per_hour is None or usd <= caps.usd_per_hour + 1e-9, "$/h cap passed"
        rented = [(m.token, m.spec.instance_id) for m in self.machines()]
        assert len(rented) == len(set(rented)), "one intent, two machines"
        day_s = day_start_s(self.clock.true_s())
        self.day_usd[day_s] = self.day_usd.get(day_s, 0.0) + usd * self.step_s / 3600
        if caps.usd_per_day is not None:
            assert self.day_usd[day_s] <= caps.usd_per_day + 1e-9, "$/day cap passed"
        self.max_nodes = max(self.max_nodes, len(alive))

    # --- looking --------------------------------------------------------------------------

    def machines(self) -> list[Machine]:
        return [m for cloud in self.clouds.values() for m in cloud.machines.values()]

    def machines_of(self, instance_id: str) -> list[Machine]:
        return [m for m in self.machines() if m.spec.instance_id == instance_id]

    def alive(self) -> list[Machine]:
        return [m for cloud in self.clouds.values() for m in cloud.alive()]

    def rows(self) -> list[Instance]:
        return list(reversed(self.ledger.instances()))

    def row(self, number: int = 0) -> Instance:
        return self.rows()[number]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.ledger.events(limit=100_000)]

    def calls(self, name: str) -> int:
        """Return how often the clouds were called so, all of them together."""
        return sum(cloud.calls.count(name) for cloud in self.clouds.values())

    def describe(self) -> str:
        rows = ", ".join(f"{r.instance_id} {r.state} ({r.problem})" for r in self.rows())
        return f"{self.loop.phase or self.loop.plan.summary} | {rows}"

    def is_quiet(self) -> bool:
        """Return whether nothing is rented and nothing is promised."""
        return not self.alive() and not self.ledger.live_instances()

    def assert_nothing_left(self) -> None:
        """No machine, no open row, no reservation, and each life paid for once."""
        assert self.alive() == []
        assert list(self.ledger.live_instances()) == []
        rows = self.rows()
        assert all(row.is_ended for row in rows)
        ended = sorted(r.instance_id for r in rows if r.state == "terminated")
        assert sorted(s.instance_id for s in self.ledger.spends()) == ended, "spend booked once"
        known = {row.instance_id for row in rows}
        assert {m.spec.instance_id for m in self.machines()} <= known, "a machine without a row"


def stranger_spec(world: World, instance_id: str = "i-unknown") -> LaunchSpec:
    """Return the spec of a machine that carries our tags and is in no ledger."""
    now_s = world.clock.true_s()
    return LaunchSpec(
        cluster_id=world.ledger.cluster_id,
        instance_id=instance_id,
        epoch=1,
        head_address="127.0.0.1:1",
        controller_url="http://127.0.0.1:2",
        labels={"site": "cloud"},
        expires_at_s=now_s + world.params.lease_s,
        ray_version="2",
        python_version="3",
    )


def two_clouds() -> Sequence[Offer]:
    """Return a cheap offer of `sim` and a dearer one of `other`."""
    return [
        make_offer(),
        make_offer(offer_id="other/b4", provider="other", instance_type="b4", usd_per_hour=3.0),
    ]

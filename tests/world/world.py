"""The whole: a controller made of the real loop, the real policy and the real ledger."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.adapters.ledger import SqlLedger, open_ledger, sqlite_url
from hybrid.control.act import Actor
from hybrid.control.base import Base
from hybrid.control.book import Book
from hybrid.control.closing import Closer
from hybrid.control.clouds import Clouds
from hybrid.control.finish import Finisher
from hybrid.control.loop import Loop
from hybrid.control.observe import RayEye, Reconciler
from hybrid.control.params import ClusterFacts, ControlParams
from hybrid.core.lifecycle import Deadlines
from hybrid.core.models import Caps, Instance, Offer
from hybrid.core.policy.params import PolicyParams
from hybrid.jobs.dispatch import Dispatcher
from tests.world.base import SimFleet, SimHead, SimJobs
from tests.world.clock import VirtualClock
from tests.world.cloud import SimCloud
from tests.world.ray import SimRay


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


@dataclass
class World:
    """One cluster, its cloud and its controller, which can crash and come back."""

    folder: Path
    params: ControlParams = field(default_factory=make_params)
    offers: list[Offer] = field(default_factory=lambda: [make_offer()])
    clock: VirtualClock = field(default_factory=VirtualClock)
    host_count: int = 2
    hook: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self.cloud = SimCloud(self.clock, self.offers)
        self.ray = SimRay(self.clock)
        shapes = {f"host-{n}": {"GPU": 4.0, "CPU": 4.0} for n in range(self.host_count)}
        self.head = SimHead(self.ray)
        self.fleet = SimFleet(self.ray, dict(shapes))
        self.jobs = SimJobs()
        self.id_count = 0
        self.max_nodes = 0
        self.max_usd_per_hour = 0.0
        self.ledger: SqlLedger | None = None
        self.boot()

    # --- the controller -------------------------------------------------------------------

    def boot(self) -> None:
        """Start a controller on the ledger; the one before, if any, is dead."""
        if self.ledger is not None:
            self.ledger.close()
        self.ledger = open_ledger(sqlite_url(self.folder / "ledger.db"))
        self.ledger.acquire("test", now_s=self.clock.now_s())
        book = Book(self.ledger, self.clock, self.params.deadlines)
        shapes = self.fleet.shapes
        base = Base(
            self.head,
            self.fleet,
            self.clock,
            shapes=dict(shapes),
            labels={name: {"site": "onprem"} for name in shapes},
        )
        clouds = Clouds([self.cloud], self.clock, offers_every_s=0.0)
        eye = RayEye(self.ray, self.clock)
        actor = Actor(
            book=book,
            clouds=clouds,
            cluster=self.ray,
            clock=self.clock,
            params=self.params,
            facts=ClusterFacts(
                name="test",
                cluster_id=self.ledger.cluster_id,
                head_address="127.0.0.1:1",
                controller_url="http://127.0.0.1:2",
                ray_version="2",
                python_version="3",
            ),
            new_id=self._new_id,
            secret=b"secret",
            rng=random.Random(1),
        )
        finisher = Finisher(book, clouds, actor, self.clock, self.params)
        dispatcher = Dispatcher(self.ledger, self.jobs, self.clock)
        self.loop = Loop(
            book=book,
            base=base,
            clouds=clouds,
            ray=eye,
            reconciler=Reconciler(book, clouds, eye, self.clock, self.params),
            actor=actor,
            finisher=finisher,
            closer=Closer(book, clouds, actor, finisher, base, dispatcher, self.clock),
            jobs=dispatcher,
            clock=self.clock,
            params=self.params,
        )
        self.loop.start()

    def _new_id(self) -> str:
        self.id_count += 1
        return f"i-{self.id_count:04d}"

    # --- time -----------------------------------------------------------------------------

    def step(self, *, is_controller_up: bool = True) -> None:
        """Let one second pass: the cloud boots, Ray works, the controller ticks."""
        self.clock.advance(1.0)
        self.sync()
        self.ray.step()
        if is_controller_up:
            self.loop.tick()
            self.sync()
        self.check()

    def run(self, seconds: int, *, until: Callable[[], bool] | None = None) -> int:
        """Step until `until` holds or time is over; return the seconds used."""
        for second in range(seconds):
            if until is not None and until():
                return second
            self.step()
        if until is not None:
            assert until(), f"not reached in {seconds} s: {self.loop.plan.summary}"
        return seconds

    def sync(self) -> None:
        """Make nodes of booted machines, and kill nodes of ended ones."""
        for machine in self.cloud.booted():
            known = [
                n for n in self.ray.nodes.values() if n.instance_id == machine.spec.instance_id
            ]
            if not known:
                self.ray.add(
                    machine.offer.shape,
                    machine.spec.labels,
                    instance_id=machine.spec.instance_id,
                )
        alive = {m.spec.instance_id for m in self.cloud.alive()}
        for node in self.ray.nodes.values():
            if node.instance_id and node.instance_id not in alive and not node.is_dead:
                if self.ray._on(node):
                    self.ray.killed_busy.append(node.instance_id)
                self.ray.kill(node)

    def check(self) -> None:
        """Hold the promises that must be true at each moment."""
        alive = self.cloud.alive()
        caps = self.params.caps
        usd = sum(m.offer.usd_per_hour for m in alive)
        gpus = sum(m.offer.gpu_count for m in alive)
        assert caps.node_count is None or len(alive) <= caps.node_count, "node cap passed"
        assert caps.gpu_count is None or gpus <= caps.gpu_count, "gpu cap passed"
        assert caps.usd_per_hour is None or usd <= caps.usd_per_hour + 1e-9, "$/h cap passed"
        tokens = [m.token for m in self.cloud.machines.values()]
        assert len(tokens) == len(set(tokens)), "one intent, two machines"
        self.max_nodes = max(self.max_nodes, len(alive))

    # --- looking --------------------------------------------------------------------------

    def rows(self) -> list[Instance]:
        assert self.ledger is not None
        return list(reversed(self.ledger.instances()))

    def kinds(self) -> list[str]:
        assert self.ledger is not None
        return [event.kind for event in self.ledger.events(limit=100_000)]

    def assert_nothing_left(self) -> None:
        """No machine, no open row, no reservation."""
        assert self.ledger is not None
        assert self.cloud.alive() == []
        assert list(self.ledger.live_instances()) == []
        assert all(row.is_ended for row in self.rows())

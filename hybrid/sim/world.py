"""The simulated cluster at one moment: its jobs, its nodes, its money, and what is to come."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from hybrid.control.boots import Boots
from hybrid.core.models import Demand, Node
from hybrid.core.models.work import JobView, Slot
from hybrid.core.outcomes import Outcomes
from hybrid.core.policy.jobs.board import Board
from hybrid.core.policy.jobs.terms import Terms
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.plan import Action
from hybrid.core.rate import Rate
from hybrid.sim.fleet import Bill, Launches, Rented, home_node, offers_of
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Policy
from hybrid.sim.simjob import SimJob, simulated
from hybrid.sim.traces.trace import Trace


class Kind(IntEnum):
    """What can happen."""

    ARRIVAL = 0
    END = 1
    READY = 2
    FAILED = 3
    SAVED = 4
    TICK = 5


@dataclass
class World:
    """What is there. `Course` changes it, `Engine` lets time pass.

    Attributes:
        free_home_gpu_s: Integral of what was free at home.
        lock_in_gpu_s: Integral of rented GPUs with work while as many were free at home.
        decide_s: How long each decision took, by the wall clock.
        log: Every action with its time, when a list is given.
        samples: Once per `sample_s`: time, GPUs with work at home, rented, with work there,
            waiting, and money so far.
    """

    trace: Trace
    params: SimParams
    policy: Policy
    on_progress: Callable[[int], None] | None = None
    now_s: float = 0.0
    jobs: dict[str, SimJob] = field(default_factory=dict)
    rented: dict[str, Rented] = field(default_factory=dict)
    board: Board = field(default_factory=Board)
    queue: dict[str, JobView] = field(default_factory=dict)
    at_home: dict[str, JobView] = field(default_factory=dict)
    in_cloud: dict[str, JobView] = field(default_factory=dict)
    done_count: int = 0
    free_home_gpu_s: float = 0.0
    lock_in_gpu_s: float = 0.0
    home_gpu_s: float = 0.0
    cloud_gpu_s: float = 0.0
    rented_gpus: int = 0
    ready_gpus: int = 0
    decide_s: list[float] = field(default_factory=list)
    log: list[tuple[float, Action]] | None = None
    samples: list[tuple[float, float, float, float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set up the nodes at home."""
        self.offers = offers_of(self.params)
        self.labels = {offer.offer_id: dict(rented_labels(offer)) for offer in self.offers}
        self.bill = Bill(self.params)
        self.boots = Boots()
        reserve_s = self.params.boot.expected_s + self.policy.jobs.guard_s
        usd = self.params.usd_per_gpu_hour
        self.terms = Terms(0.0, self.policy.jobs, reserve_s, usd_per_gpu_hour=usd)
        self.launches = Launches(self.params, random.Random(self.params.seed))
        self._heap: list[tuple[float, int, Kind, object]] = []
        self._order = itertools.count()
        self._outcomes = Outcomes(self.policy.jobs.wait_target_s)
        self._released = Rate(half_life_s=1_800.0)
        self._sample_at_s = 0.0
        self._hot_until_s: dict[str, float] = {}
        self._nodes: dict[str, Node] = {}
        self._stale: set[str] = set()
        units: dict[int, tuple[Demand, ...]] = {}
        for job in self.trace.jobs:
            self.jobs[job.job_id] = simulated(job, self.params, units)
        whole, rest = divmod(self.params.gpus, self.params.node_gpus)
        sizes = [self.params.node_gpus] * whole + ([rest] if rest else [])
        for number, size in enumerate(sizes):
            node_id = f"home-{number:05d}"
            node = home_node(node_id, size, size)
            self.board.home.add(node)
            self._nodes[node_id] = node

    def _pass_time(self, to_s: float) -> None:
        while self._sample_at_s <= to_s:
            self._sample()
        passed_s = to_s - self.now_s
        if passed_s > 0:
            free = self.board.home.free_gpus
            busy = self.ready_gpus - self.board.cloud.free_gpus
            self.free_home_gpu_s += passed_s * free
            self.lock_in_gpu_s += passed_s * min(free, busy)
        self.now_s = to_s

    def _sample(self) -> None:
        at_s, home = self._sample_at_s, self.params.gpus - self.board.home.free_gpus
        busy = self.ready_gpus - self.board.cloud.free_gpus
        queued = sum(job.gpus for job in self.queue.values())
        usd = self.bill.usd + self.bill.open_usd(self.rented, at_s)
        self.samples.append((at_s, home, float(self.rented_gpus), busy, queued, usd))
        self._sample_at_s += self.params.sample_s

    def _push(self, at_s: float, kind: Kind, subject: object) -> None:
        heapq.heappush(self._heap, (at_s, next(self._order), kind, subject))

    def _touch(self, slots: Sequence[Slot]) -> None:
        self._stale.update(slot.node_id for slot in slots)

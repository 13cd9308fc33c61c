"""An engine that checks, before each moment passes, that nothing was conjured up or lost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.plan import Launch
from hybrid.sim.engine import Engine
from hybrid.sim.traces.trace import Trace, TraceJob
from hybrid.sim.world import Kind

_HAIR = 1e-6


def random_trace(seed: int, *, count: int = 80, most_gpus: int = 24) -> Trace:
    """Return jobs that come in bursts; some are long, some wide, two thirds can be stopped."""
    draw = random.Random(seed)
    jobs, at_s = [], 0.0
    for number in range(count):
        at_s += draw.expovariate(1 / (60.0 if draw.random() < 0.8 else 7_200.0))
        sizes = [n for n in (1, 1, 1, 2, 3, 4, 8, 12, 16, 24) if n <= most_gpus]
        jobs.append(
            TraceJob(
                job_id=f"j{number:03d}",
                submit_s=round(at_s, 3),
                duration_s=round(draw.lognormvariate(7.5, 1.5), 3) + 1.0,
                gpus=draw.choice(sizes),
                is_checkpointable=draw.random() < 0.67,
            )
        )
    return Trace.of(f"random {seed}", jobs)


@dataclass
class Watched(Engine):
    """Raises `AssertionError` at the first moment that does not add up.

    Attributes:
        rents: Each returned node: GPUs, since when it is billed, and when it was returned.
        looks: Moments that were checked.
    """

    rents: list[tuple[int, float, float]] = field(default_factory=list)
    asked_at_s: list[float] = field(default_factory=list)
    looks: int = 0

    def _pass_time(self, to_s: float) -> None:
        assert to_s >= self.now_s
        self._check_nodes()
        self._check_jobs()
        self.looks += 1
        super()._pass_time(to_s)

    def _launch(self, action: Launch) -> None:
        before = len(self.rented)
        super()._launch(action)
        if len(self.rented) > before:
            self.asked_at_s.append(self.now_s)

    def _return(self, instance_id: str) -> None:
        node = self.rented.get(instance_id)
        if node is not None:
            asked_at_s = self.asked_at_s[int(instance_id.rpartition("-")[2]) - 1]
            self.rents.append((node.gpus, asked_at_s, self.now_s))
        super()._return(instance_id)

    def _check_nodes(self) -> None:
        used: Counter[str] = Counter()
        for job in (*self.at_home.values(), *self.in_cloud.values()):
            assert sum(slot.gpus for slot in job.slots) == job.gpus, job.job_id
            assert len({slot.node_id for slot in job.slots}) == len(job.slots), job.job_id
            for slot in job.slots:
                used[slot.node_id] += slot.gpus  # type: ignore[assignment]
        for _, _, kind, subject in self._heap:
            if kind is Kind.SAVED:
                self._count_held(subject, used)
        for nodes in (self.board.home, self.board.cloud):
            for node_id, total in nodes.total.items():
                assert used[node_id] <= total + _HAIR, f"{node_id} is oversubscribed"
                assert abs(total - used[node_id] - nodes.free[node_id]) < _HAIR, node_id
            assert abs(sum(nodes.free.values()) - nodes.free_gpus) < _HAIR
        assert set(used) <= self.board.home.total.keys() | self.board.cloud.total.keys()
        assert sum(node.gpus for node in self.rented.values()) == self.rented_gpus
        assert self.rented_gpus <= self.params.max_rented_gpus

    def _count_held(self, subject: object, used: Counter[str]) -> None:
        assert isinstance(subject, tuple)
        view, slots = subject
        assert isinstance(view, JobView)
        for slot in slots:
            assert isinstance(slot, Slot)
            used[slot.node_id] += slot.gpus  # type: ignore[assignment]

    def _check_jobs(self) -> None:
        places = Counter([*self.queue, *self.at_home, *self.in_cloud])
        for job_id, job in self.jobs.items():
            is_there = job.trace.submit_s < self.now_s and job.ended_at_s is None
            assert places[job_id] <= 1, f"{job_id} is in two places"
            assert places[job_id] == 1 or not is_there, f"{job_id} is lost"
            assert job.ended_at_s is None or places[job_id] == 0, f"{job_id} runs after its end"

    def billed_usd(self) -> float:
        """Return the bill, counted again from the returns."""
        params = self.params
        usd = 0.0
        for gpus, asked_at_s, end_s in self.rents:
            from_s, to_s = asked_at_s + params.boot.alloc_s, end_s + params.bill_tail_s
            if to_s > from_s:
                billed_s = max(params.bill_least_s, to_s - from_s)
                usd += billed_s * gpus * params.usd_per_gpu_hour / 3600
        return usd

"""The simulated cluster: the trace's jobs, the nodes, and a policy on a virtual clock.

Strict where it costs the policy: a node is held while a job on it is saved, rented GPUs are
billed meanwhile, each resumption pays its load, and every interruption is counted.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from hybrid.control.boots import Boots
from hybrid.core.models import Demand, InstanceState, Node
from hybrid.core.models.work import JobView, Slot
from hybrid.core.outcomes import Outcomes
from hybrid.core.policy.jobs.board import Board
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.terms import Terms, is_home_soon, late_budget, terms_of
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.plan import (
    Action,
    Drain,
    Launch,
    Move,
    Snapshot,
    Start,
    Starts,
    Suspend,
    Terminate,
)
from hybrid.core.rate import Rate
from hybrid.sim.fleet import (
    Bill,
    Launches,
    Rented,
    booting,
    home_node,
    offers_of,
    rented_node,
)
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Policy
from hybrid.sim.simjob import SimJob, simulated
from hybrid.sim.traces.trace import Trace

# With nothing running, booting or to come, only the policy can go on; it had time enough then.
_STANDSTILL_S = 7 * 86_400.0


class _Kind(IntEnum):
    ARRIVAL = 0
    END = 1
    READY = 2
    FAILED = 3
    SAVED = 4
    TICK = 5


@dataclass
class Engine:
    """Runs one trace under one policy.

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
        self._heap: list[tuple[float, int, _Kind, object]] = []
        self._order = itertools.count()
        self._outcomes = Outcomes(self.policy.jobs.wait_target_s)
        self._released = Rate(half_life_s=1_800.0)
        self._sample_at_s = 0.0
        self._is_ticking = False
        self._still_from_s = 0.0
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

    # --- the clock ------------------------------------------------------------------------

    def run(self) -> None:
        """Run until every job is done and every node is returned."""
        for job in self.trace.jobs:
            self._push(job.submit_s, _Kind.ARRIVAL, job.job_id)
        while self._heap:
            self._pass_time(self._heap[0][0])
            is_changed = False
            is_tick = False
            while self._heap and self._heap[0][0] == self.now_s:
                _, _, kind, subject = heapq.heappop(self._heap)
                if kind is _Kind.TICK:
                    is_tick = True
                else:
                    is_changed |= self._happen(kind, subject)
            if is_tick:
                self._is_ticking = False
                self._dispatch()
                self._tick()
            elif is_changed:
                self._dispatch()
            if not self._is_ticking and (self.queue or self.rented):
                self._note_standstill()
                self._is_ticking = True
                tick_s = self.params.tick_s
                self._push((math.floor(self.now_s / tick_s) + 1) * tick_s, _Kind.TICK, None)

    def _note_standstill(self) -> None:
        """Stop a run in which nothing will ever happen, instead of ticking for ever.

        Raises:
            ValueError: Nothing runs, boots or is to come, and the policy has let the rest wait.
        """
        if self._heap:
            self._still_from_s = self.now_s
        elif self.now_s - self._still_from_s > _STANDSTILL_S:
            raise ValueError(
                f"{self.policy.name} leaves {len(self.queue)} jobs waiting and {len(self.rented)} "
                f"nodes rented for ever: nothing happened for {_STANDSTILL_S / 86_400:.0f} days"
            )

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

    def _push(self, at_s: float, kind: _Kind, subject: object) -> None:
        heapq.heappush(self._heap, (at_s, next(self._order), kind, subject))

    def _happen(self, kind: _Kind, subject: object) -> bool:
        """Let something happen; return whether it may let waiting work start."""
        match kind:
            case _Kind.ARRIVAL:
                job = self.jobs[str(subject)]
                self.queue[job.view.job_id] = job.view
                self._outcomes.submit(job.view.job_id, self.now_s)
            case _Kind.END:
                return self._end(*subject)  # type: ignore[misc]
            case _Kind.READY:
                return self._ready(str(subject))
            case _Kind.FAILED:
                return self._fail(str(subject))
            case _:
                self._saved(*subject)  # type: ignore[misc]
        return True

    # --- jobs -----------------------------------------------------------------------------

    def _start(
        self, job: SimJob, slots: tuple[Slot, ...], *, is_taken: bool, delay_s: float = 0
    ) -> None:
        view = job.view
        is_home = slots[0].node_id in self.board.home.free
        if is_home:
            for slot in slots:
                hot_s = self._hot_until_s.get(slot.node_id, 0.0) - self.now_s
                delay_s = max(delay_s, hot_s)
        if not is_taken:
            (self.board.home if is_home else self.board.cloud).take(view, slots)
        self._touch(slots)
        load_s = view.checkpoint.load_s if view.is_started and view.checkpoint else 0.0
        if job.first_at_s is None:
            job.first_at_s = self.now_s + delay_s
            self._outcomes.begin(self.now_s, job.first_at_s - view.submitted_at_s)
        self._outcomes.place(view.job_id, self.now_s, is_home=is_home)
        useful_s = self.now_s + delay_s + load_s
        job.version += 1
        job.taken_at_s = self.now_s
        job.view = view.model_copy(
            update={"slots": slots, "useful_from_s": useful_s, "is_started": True}
        )
        if is_home:
            self.at_home[view.job_id] = job.view
        else:
            self.in_cloud[view.job_id] = job.view
            for slot in slots:
                self.rented[slot.node_id].idle_since_s = None
        self._push(useful_s + job.left_s, _Kind.END, (view.job_id, job.version))

    def _release(self, job: SimJob) -> None:
        """Take a job from its place, and count what it did there."""
        view = job.view
        held_s = self.now_s - job.taken_at_s
        self._touch(view.slots)
        if self.at_home.pop(view.job_id, None) is not None:
            self.board.home.give(view, view.slots)
            self.home_gpu_s += held_s * view.gpus
            return
        del self.in_cloud[view.job_id]
        self.board.cloud.give(view, view.slots)
        self.cloud_gpu_s += held_s * view.gpus
        job.rented_gpu_s += held_s * view.gpus
        for slot in view.slots:
            node = self.rented[slot.node_id]
            node.busy_gpu_s += held_s * slot.gpus
            if self.board.cloud.free[slot.node_id] >= node.gpus:
                node.idle_since_s = self.now_s

    def _stop(self, job: SimJob, **counts: int) -> tuple[Slot, ...]:
        """Stop a job with its progress saved; return where it ran."""
        view = job.view
        done_s = max(0.0, self.now_s - (view.useful_from_s or self.now_s))
        self._release(job)
        job.version += 1
        job.left_s = max(1.0, job.left_s - done_s)
        job.view = view.model_copy(
            update={
                "slots": (),
                "useful_from_s": None,
                "progress_s": view.progress_s + done_s,
                "interruption_count": view.interruption_count + 1,
                **counts,
            }
        )
        return view.slots

    def _heat(self, slots: Sequence[Slot], save_s: float) -> None:
        """Keep nodes at home busy while a job on them is saved."""
        for slot in slots:
            self._hot_until_s[slot.node_id] = self.now_s + save_s

    def _hold(self, slots: Sequence[Slot], job: SimJob, save_s: float) -> None:
        """Keep rented GPUs busy while a job on them is saved."""
        cloud = self.board.cloud
        cloud.take(job.view, slots)
        for slot in slots:
            node = self.rented[slot.node_id]
            node.idle_since_s = None
            node.busy_gpu_s += slot.gpus * save_s
        self.cloud_gpu_s += job.view.gpus * save_s
        self._push(self.now_s + save_s, _Kind.SAVED, (job.view, tuple(slots)))

    def _saved(self, view: JobView, slots: tuple[Slot, ...]) -> None:
        self.board.cloud.give(view, slots)
        self._touch(slots)
        for slot in slots:
            node = self.rented.get(slot.node_id)
            if node is not None and self.board.cloud.free[slot.node_id] >= node.gpus:
                node.idle_since_s = self.now_s

    def _end(self, job_id: str, version: int) -> bool:
        job = self.jobs[job_id]
        if job.version != version:
            return False
        if job_id in self.at_home:
            self._released.add(self.now_s, job.view.gpus)
        self._release(job)
        self._outcomes.forget(job_id)
        job.ended_at_s = self.now_s
        self.done_count += 1
        if self.on_progress:
            self.on_progress(self.done_count)
        return True

    # --- nodes ----------------------------------------------------------------------------

    def _launch(self, action: Launch) -> None:
        offer = action.offer
        if self.rented_gpus + offer.gpu_count > self.params.max_rented_gpus:
            return
        is_coming, at_s = self.launches.draw(self.now_s)
        instance_id = f"rent-{self.launches.count:07d}"
        instance = booting(instance_id, offer, action.reason, self.now_s)
        billed_s = self.now_s + self.params.boot.alloc_s
        self.rented[instance_id] = Rented(instance, offer.gpu_count, billed_s)
        self.rented_gpus += offer.gpu_count
        self._push(at_s, _Kind.READY if is_coming else _Kind.FAILED, instance_id)

    def _ready(self, instance_id: str) -> bool:
        node = self.rented.get(instance_id)
        if node is None:
            return False
        node.instance = node.instance.model_copy(
            update={
                "state": InstanceState.RUNNING,
                "state_at_s": self.now_s,
                "joined_at_s": self.now_s,
                "node_id": instance_id,
            }
        )
        node.idle_since_s = self.now_s
        self.boots.learn(node.instance)
        self.ready_gpus += node.gpus
        labels = self.labels[node.instance.offer.offer_id]
        self.board.cloud.add(rented_node(node, labels, node.gpus, self.now_s))
        self._stale.add(instance_id)
        return True

    def _fail(self, instance_id: str) -> bool:
        node = self.rented.pop(instance_id, None)
        if node is None:
            return False
        self.rented_gpus -= node.gpus
        return True

    def _return(self, instance_id: str) -> None:
        node = self.rented.pop(instance_id, None)
        if node is None:
            return
        self.bill.close(node, self.now_s)
        self.launches.note_return(self.now_s)
        self.rented_gpus -= node.gpus
        if node.is_ready:
            self.ready_gpus -= node.gpus
            self.board.cloud.remove(instance_id)
            self._nodes.pop(instance_id, None)
            self._stale.discard(instance_id)
        else:
            self.launches.cancelled += 1

    # --- the policy -----------------------------------------------------------------------

    def _dispatch(self) -> None:
        if not self.queue:
            return
        if self.board.home.free_gpus <= 0 and self.board.cloud.free_gpus <= 0:
            return
        starts = self._starts()
        terms = replace(
            self.terms,
            now_s=self.now_s,
            late_budget=late_budget(starts, self.policy.jobs),
            is_home_soon=is_home_soon(starts, self.policy.jobs),
        )
        draft = Draft(terms, self.board, dict(self.queue), self.at_home, self.in_cloud)
        self.policy.dispatch(draft)
        for action in draft.actions:
            if isinstance(action, Start):
                self._do_start(action, is_taken=True)

    def _tick(self) -> None:
        snapshot = self.snapshot()
        self.terms = terms_of(snapshot, self.policy.jobs)
        began_s = time.perf_counter()
        actions = self.policy.decide(snapshot)
        self.decide_s.append(time.perf_counter() - began_s)
        for action in actions:
            self._do(action)
        if actions:
            self._dispatch()

    def snapshot(self) -> Snapshot:
        """Return what the policy may see now."""
        cloud = self.board.cloud
        for node_id in self._stale:
            if node_id in self.board.home.free:
                free = self.board.home.free[node_id]
                self._nodes[node_id] = home_node(node_id, self.board.home.total[node_id], free)
        for node_id, node in self.rented.items():
            # How long a node is idle changes all the time; nothing else does by itself.
            if node.is_ready and (node_id in self._stale or node.idle_since_s is not None):
                labels = self.labels[node.instance.offer.offer_id]
                self._nodes[node_id] = rented_node(node, labels, cloud.free[node_id], self.now_s)
        self._stale.clear()
        return _EMPTY.model_copy(
            update={
                "now_s": self.now_s,
                "nodes": tuple(self._nodes.values()),
                "jobs": (
                    *self.queue.values(),
                    *self.at_home.values(),
                    *self.in_cloud.values(),
                ),
                "instances": tuple(node.instance for node in self.rented.values()),
                "offers": self.offers,
                "boot_s_by_offer": self.boots.p95_s(),
                "starts": self._starts(),
                "home_release_gpus_per_s": self._released.per_s(self.now_s),
            }
        )

    def _starts(self) -> Starts:
        soon_s = self.policy.jobs.soon_ratio * self.terms.reserve_s
        return self._outcomes.starts(self.now_s, soon_s)

    def _do(self, action: Action) -> None:
        if self.log is not None:
            self.log.append((self.now_s, action))
        match action:
            case Start():
                self._do_start(action, is_taken=False)
            case Suspend():
                self._do_suspend(action)
            case Move():
                self._do_move(action)
            case Launch():
                self._launch(action)
            case Drain() | Terminate():
                self._return(action.instance_id)

    def _do_start(self, action: Start, *, is_taken: bool) -> None:
        del self.queue[action.job_id]
        self._start(self.jobs[action.job_id], action.slots, is_taken=is_taken)

    def _do_suspend(self, action: Suspend) -> None:
        job = self.jobs[action.job_id]
        save_s = job.view.checkpoint.save_s if job.view.checkpoint else 0.0
        job.suspension_count += 1
        slots = self._stop(job, suspension_count=job.suspension_count)
        self._heat(slots, save_s)
        self.queue[action.job_id] = job.view
        self._outcomes.suspend(action.job_id)

    def _do_move(self, action: Move) -> None:
        job = self.jobs[action.job_id]
        save_s = job.view.checkpoint.save_s if job.view.checkpoint else 0.0
        slots = self._stop(job)
        match action.purpose:
            case "home":
                job.home_count += 1
                self._hold(slots, job, save_s)
            case "exchange":
                job.exchange_count += 1
                self._heat(slots, save_s)
            case "pack":
                job.move_count += 1
                self._heat(slots, save_s)
        self._start(job, action.slots, is_taken=False, delay_s=save_s)

    def _touch(self, slots: Sequence[Slot]) -> None:
        self._stale.update(slot.node_id for slot in slots)


_EMPTY = Snapshot(now_s=0.0)

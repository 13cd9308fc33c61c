"""A random history of the queue: who comes, leaves, fails and dies is drawn from a seed.

Jobs of all kinds are submitted and cancelled, programs fail, nodes die, Ray's answers are lost and
controllers crash between two calls; then there is peace, and everything must come right. What must
be true at each moment is held after each step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.core.models import Job, JobClass, JobSpec, JobState, SavedWork
from hybrid.core.policy.jobs.params import JobParams
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, roomy_params
from tests.world.trace import Crash
from tests.world.world import World

POLICY = JobParams(rent_after_s=20.0, min_run_s=20.0, pinned_run_s=20.0, guard_s=5.0)
TO_CANCEL_S = 30.0
"""A queued job is cancelled within so long while Ray answers: a doubtful one is looked for."""
PEACE_S = 6_000.0
GRACE_S = 180.0

_S = JobState


@dataclass
class RandomQueue:
    """One history.

    Attributes:
        steps: Of trouble, before the peace.
        log: What was done, for the message of a failure.
        asked_at_s: When the end of each cancelled job was asked for.
        hurt: Jobs that may fail: their program failed, or a node of theirs died.
        placed: How many places were given, and how often others waited for the same.
    """

    seed: int
    folder: Path
    steps: int = 90
    log: list[str] = field(default_factory=list)
    asked_at_s: dict[str, float] = field(default_factory=dict)
    hurt: set[str] = field(default_factory=set)
    placed: int = 0
    compared: int = 0

    def play(self) -> World:
        """Play it; raise `AssertionError`, with the history, when something is not as promised."""
        self.rng = random.Random(self.seed)
        params = roomy_params()
        policy = params.policy.model_copy(update={"jobs": POLICY})
        params = params.model_copy(update={"policy": policy})
        self.world = World(
            self.folder, params=params, step_s=STEP_S, store=MemoryStore(), may_kill_busy=True
        )
        self.submitted: dict[str, JobSpec] = {}
        self.before: dict[str, Job] = {}
        try:
            self._play()
        except AssertionError as error:
            told = "\n".join(self.log)
            raise AssertionError(f"seed {self.seed}: {error}\n{told}") from error
        return self.world

    def _play(self) -> None:
        world = self.world
        for _ in range(self.steps):
            for chance, act in self._acts():
                if self.rng.random() < chance:
                    act()
            self._step()
        world.jobs.answers_get_lost = world.jobs.is_silent = False
        world.tracer.hook = None
        self._say("peace")
        for job in self._live():
            if job.spec.gpus > 4:
                self._ask_cancel(job)
        end_s = world.clock.monotonic_s() + PEACE_S
        while self._live() and world.clock.monotonic_s() < end_s:
            self._step()
        self._hold_end()

    def _step(self) -> None:
        world = self.world
        try:
            world.step()
        except Crash:
            self._boot()
            return
        self._hold()

    def _boot(self) -> None:
        self._say("the controller dies")
        self.world.sleep(self.rng.choice([0.0, 5.0, 40.0]))
        self.world.boot()
        self.before = {}  # what happened in the tick that died is not compared

    def _ask(self, call: Callable[[], object]) -> None:
        """Ask the controller as a client does, which asks again when it does not answer."""
        try:
            call()
        except Crash:
            self._boot()
            call()

    def _say(self, text: str) -> None:
        self.log.append(f"{self.world.clock.monotonic_s():.0f} s: {text}")

    def _live(self) -> list[Job]:
        return list(self.world.ledger.jobs(is_live_only=True, limit=None))

    # --- what can happen --------------------------------------------------------------------

    def _acts(self) -> list[tuple[float, Callable[[], None]]]:
        return [
            (0.30, self._submit),
            (0.06, self._cancel),
            (0.04, self._fail),
            (0.03, self._kill_node),
            (0.05, self._crash),
            (0.05, self._lose_answers),
        ]

    def _submit(self) -> None:
        rng = self.rng
        gpus = rng.choice([1.0, 2.0, 4.0, 4.0])
        saves = SavedWork(url="s3://bucket/run", save_s=5.0, load_s=5.0)
        values: dict[str, object] = {
            "entrypoint": "python train.py",
            "gpus": gpus if rng.random() < 0.95 else 64.0,
            "nodes": 2 if rng.random() < 0.15 else 0,
            "priority": rng.choice([10, 50, 50, 90]),
            "job_class": rng.choice([JobClass.BATCH, JobClass.BATCH, JobClass.BEST_EFFORT]),
            "site": rng.choice(["any", "any", "onprem"]),
            "checkpoint": saves if rng.random() < 0.5 else None,
            "retries": rng.choice([0, 1, 2]),
        }
        job_id = f"j{len(self.submitted):03}"
        self.world.jobs.lasts_s[job_id] = rng.choice([20.0, 60.0, 200.0])
        if rng.random() < 0.1:
            self.world.jobs.deaf.add(job_id)
        spec = JobSpec.model_validate(values)
        self._ask(lambda: self.world.desk.submit(spec, job_id=job_id))
        self.submitted[job_id] = spec
        told = {k: v for k, v in values.items() if k != "entrypoint" and v}
        self._say(f"{job_id} comes: {told}")

    def _cancel(self) -> None:
        if live := [job for job in self._live() if not job.is_cancel_asked]:
            self._ask_cancel(self.rng.choice(live))

    def _ask_cancel(self, job: Job) -> None:
        self._say(f"{job.job_id} is cancelled while {job.state.value}")
        self._ask(lambda: self.world.desk.cancel(job.job_id))
        self.asked_at_s[job.job_id] = self.world.clock.monotonic_s()

    def _fail(self) -> None:
        running = [job for job in self._live() if job.state is _S.RUNNING]
        if running:
            job = self.rng.choice(running)
            if self.world.jobs.states.get(job.ray_id) is _S.RUNNING:
                self._say(f"the program of {job.job_id} fails")
                self.hurt.add(job.job_id)
                self.world.jobs._end(job.ray_id, _S.FAILED)

    def _kill_node(self) -> None:
        ray = self.world.ray
        nodes = [n for n in ray.nodes.values() if not n.is_dead and n.labels.get("role") != "head"]
        if not nodes:
            return
        node = self.rng.choice(nodes)
        self._say(f"{node.node_id} dies")
        for attempt in self.world.jobs.attempts.values():
            if any(task.node_id == node.node_id and not task.is_done for task in attempt.tasks):
                self.hurt.add(attempt.job_id)
        ray.kill(node)
        self.world.fleet.joined.discard(str(node.labels.get("hybrid-host", "")))

    def _crash(self) -> None:
        def crash() -> None:
            raise Crash

        tracer = self.world.tracer
        tracer.at(tracer.count + self.rng.randrange(1, 40), crash)

    def _lose_answers(self) -> None:
        self.world.jobs.answers_get_lost = not self.world.jobs.answers_get_lost

    # --- what must be true ------------------------------------------------------------------

    def _hold(self) -> None:
        world = self.world
        now = {job.job_id: job for job in world.ledger.jobs(limit=None)}
        assert set(now) == set(self.submitted), "a job was lost, or came from nowhere"
        assert world.jobs.most_copies <= 1, "two attempts of one job at once"
        assert all(count == 1 for count in world.jobs.starts.values()), "an attempt started twice"
        for job in now.values():
            self._hold_gang(job)
            self._hold_cancel(job)
            assert job.created_at_s == self.before.get(job.job_id, job).created_at_s
        self._hold_order(now)
        self.before = now

    def _hold_gang(self, job: Job) -> None:
        wanted = max(1, job.spec.nodes)
        assert len(job.slots) in (0, wanted), f"{job.job_id} holds {job.slots}"
        assert len({slot.node_id for slot in job.slots}) == len(job.slots), "one node twice"
        if job.state in (_S.SUBMITTED, _S.RUNNING):
            assert job.slots, f"{job.job_id} is {job.state} without a place"

    def _hold_cancel(self, job: Job) -> None:
        asked_at_s = self.asked_at_s.get(job.job_id)
        if asked_at_s is None:
            return
        if job.state.is_ended:
            return
        waited_s = self.world.clock.monotonic_s() - asked_at_s
        most_s = TO_CANCEL_S if not job.slots else TO_CANCEL_S + GRACE_S
        assert waited_s <= most_s, f"{job.job_id} is {job.state} {waited_s:.0f} s after its cancel"

    def _hold_order(self, now: dict[str, Job]) -> None:
        """No job gets a place at home while an equal one, more urgent or older, waits for one."""
        waited = {j for j, job in self.before.items() if _waits(job)}
        got = [now[j] for j in waited if now[j].slots and self._is_home(now[j])]
        left = [now[j] for j in waited if _waits(now[j])]
        self.placed += len(got)
        for job in got:
            for other in left:
                if _kind(job) == _kind(other):
                    self.compared += 1
                    is_passed = _rank(other) < _rank(job) and not _has_slack(other, job)
                    assert not is_passed, f"{job.job_id} passed {other.job_id}"

    def _is_home(self, job: Job) -> bool:
        return not any(self.world.ray.nodes[slot.node_id].instance_id for slot in job.slots)

    def _hold_end(self) -> None:
        jobs = {job.job_id: job for job in self.world.ledger.jobs(limit=None)}
        assert set(jobs) == set(self.submitted)
        late = [f"{j.job_id} {j.state} {j.message}" for j in jobs.values() if not j.state.is_ended]
        assert not late, f"never ended: {late}"
        for job in jobs.values():
            if job.job_id not in self.asked_at_s and job.job_id not in self.hurt:
                assert job.state is _S.SUCCEEDED, f"{job.job_id}: {job.state} {job.message}"
        attempts = self.world.jobs.attempts
        for ray_id, attempt in attempts.items():
            resumed = attempt.env.get("HYBRID_RESUME_FROM", "")
            assert not resumed or attempt.before_s > 0, f"{ray_id} goes on from nothing"


def _waits(job: Job) -> bool:
    return job.state is _S.QUEUED and not job.slots and not job.is_cancel_asked


def _kind(job: Job) -> tuple[object, ...]:
    """Return what makes two jobs equal but for their priority and age."""
    spec = job.spec
    saves = spec.checkpoint is not None and not job.is_deaf
    return spec.gpus, spec.nodes, spec.site, spec.job_class, saves


def _has_slack(job: Job, other: Job) -> bool:
    """Return whether a suspended job lets an equal one pass: it can be late for a while."""
    is_suspended = job.started_at_s is not None and job.spec.checkpoint is not None
    return is_suspended and job.spec.priority == other.spec.priority


def _rank(job: Job) -> tuple[int, float]:
    return -job.spec.priority, job.created_at_s

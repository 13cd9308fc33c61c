"""A head and hosts in memory, and a job runner that remembers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import ClusterError, FleetError, JobError
from hybrid.core.models import JobSpec, JobState, LabelConstraint
from hybrid.core.ports import HostState, HostStatus, JobStatus, LogEnd, TaskCount
from tests.world.clock import VirtualClock
from tests.world.ray import SimRay, Task


@dataclass
class SimHead:
    """See `hybrid.control.base.Head`.

    Attributes:
        is_broken: It cannot be started.
    """

    ray: SimRay
    is_up: bool = False
    is_broken: bool = False
    starts: int = 0
    stops: int = 0

    def start(self) -> None:
        self.starts += 1
        if not self.is_up and not self.is_broken:
            self.is_up = True
            self.ray.add({"CPU": 1}, {"site": "onprem", "role": "head"}, is_head=True)

    def stop(self) -> None:
        self.stops += 1
        self.is_up = False

    def is_alive(self) -> bool:
        return self.is_up

    def problem(self) -> str:
        return "" if self.is_up else "it is not running"


@dataclass
class SimFleet:
    """See `hybrid.core.ports.Fleet`.

    Attributes:
        unreachable: Hosts that nothing can be asked of.
        slow: Hosts that are joining and not there yet.
    """

    ray: SimRay
    shapes: dict[str, Mapping[str, float]]
    joined: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)

    def hosts(self) -> Sequence[str]:
        return list(self.shapes)

    def join(self, host: str) -> None:
        self._reach(host)
        if host not in self.joined:
            self.joined.add(host)
            if host not in self.slow:
                labels = {"site": "onprem", "hybrid-host": host}
                self.ray.add(self.shapes[host], labels, host=host)

    def leave(self, host: str) -> None:
        self._reach(host)
        self.joined.discard(host)

    def probe(self, host: str) -> HostStatus:
        self._reach(host)
        state = HostState.JOINED if host in self.joined else HostState.ABSENT
        if host in self.slow and host in self.joined:
            state = HostState.JOINING
        return HostStatus(host=host, state=state, shape=self.shapes[host])

    def _reach(self, host: str) -> None:
        if host in self.unreachable:
            raise FleetError(f"{host} cannot be reached")


@dataclass
class SimAttempt:
    """A program that runs.

    Attributes:
        tasks: What it holds in Ray.
        before_s: What the checkpoint it began from had done.
        answered: The last request to save that it has answered.
    """

    job_id: str
    env: Mapping[str, str]
    tasks: list[Task]
    clock: VirtualClock
    began_s: float
    before_s: float
    answered: object = None

    def done_s(self) -> float:
        """Return how long all attempts did work that was not lost."""
        return self.before_s + self.clock.monotonic_s() - self.began_s


@dataclass
class SimJobs:
    """See `hybrid.core.ports.JobRunner`.

    Attributes:
        is_silent: Every call fails.
        broken_logs: Jobs whose output cannot be read.
        poisoned: Jobs whose submission always fails without a word.
        unstoppable: Jobs whose stop always fails.
        answers_get_lost: Jobs start, and then the answer is lost.
        starts: How often each attempt of a job was really started.
        taken_at_s: When each job was taken, of those that say so.
        ray: Where drivers with GPUs hold them; without it nothing holds anything.
        deaf: Jobs that do not answer when they are asked to save.
        lasts_s: How long each job runs in all; without it until something ends it.
        most_copies: The most attempts of one job that ran at once.
    """

    submitted: dict[str, JobSpec] = field(default_factory=dict)
    states: dict[str, JobState] = field(default_factory=dict)
    selectors: dict[str, Mapping[str, str]] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    taken_at_s: dict[str, float] = field(default_factory=dict)
    stops: list[str] = field(default_factory=list)
    task_counts: dict[str, Sequence[TaskCount]] = field(default_factory=dict)
    notes: dict[str, bytes] = field(default_factory=dict)
    ray: SimRay | None = None
    deaf: set[str] = field(default_factory=set)
    lasts_s: dict[str, float] = field(default_factory=dict)
    done_s: dict[str, float] = field(default_factory=dict)
    most_copies: int = 0
    attempts: dict[str, SimAttempt] = field(default_factory=dict)
    is_silent: bool = False
    answers_get_lost: bool = False
    broken_logs: set[str] = field(default_factory=set)
    poisoned: set[str] = field(default_factory=set)
    unstoppable: set[str] = field(default_factory=set)

    def submit(
        self, job_id: str, spec: JobSpec, *, selector: Mapping[str, str], kit: str = ""
    ) -> None:
        self._reach()
        if spec.entrypoint == "refuse":
            raise JobError("Ray refuses it")
        if job_id in self.poisoned:
            raise ClusterError("internal server error")
        if job_id not in self.states:
            self.submitted[job_id] = spec
            self.selectors[job_id] = selector
            self.states[job_id] = JobState.RUNNING
            self.starts[job_id] = self.starts.get(job_id, 0) + 1
            if self.ray is not None:
                self._hold(job_id, spec, selector)
        if self.answers_get_lost:
            raise ClusterError("the answer was lost")

    def statuses(self) -> Mapping[str, JobStatus]:
        self._reach()
        return {
            job_id: JobStatus(
                state=state,
                started_at_s=None if state is JobState.SUBMITTED else self.taken_at_s.get(job_id),
            )
            for job_id, state in self.states.items()
        }

    def tasks(self, job_id: str) -> tuple[Sequence[TaskCount], bool]:
        self._reach()
        return self.task_counts.get(job_id, ()), True

    def put_note(self, key: str, value: bytes) -> None:
        self._reach()
        self.notes[key] = value

    def note(self, key: str) -> bytes | None:
        self._reach()
        return self.notes.get(key)

    def stop(self, job_id: str) -> None:
        self._reach()
        if job_id in self.unstoppable:
            raise ClusterError("internal server error")
        self.stops.append(job_id)
        if self.states.get(job_id) is JobState.RUNNING:
            self._end(job_id, JobState.CANCELLED)

    def logs(self, job_id: str) -> Iterator[str]:
        self._reach()
        if job_id in self.broken_logs:
            raise ClusterError("the node does not answer")
        if job_id not in self.states:
            raise JobError(f"Ray does not know job {job_id}")
        yield f"output of {job_id}\n"

    def log_end(self, job_id: str, *, limit_bytes: int) -> LogEnd:
        text = "".join(self.logs(job_id))
        return LogEnd(text=text[-limit_bytes:], skipped_bytes=max(0, len(text) - limit_bytes))

    def follow_logs(self, job_id: str) -> Iterator[str]:
        yield from self.logs(job_id)

    def upload(self, name: str, content: bytes) -> None:
        self._reach()

    def step(self) -> None:
        """Let programs work, save when they are asked to, and end."""
        if self.ray is None:
            return
        for ray_id, attempt in self.attempts.items():
            if self.states.get(ray_id) is not JobState.RUNNING:
                continue
            if any(not t.node_id or self.ray.nodes[t.node_id].is_dead for t in attempt.tasks):
                self._end(ray_id, JobState.FAILED)
                continue
            self._answer(ray_id, attempt)
            if attempt.done_s() >= self.lasts_s.get(attempt.job_id, float("inf")):
                self._end(ray_id, JobState.SUCCEEDED)

    def copies(self, job_id: str) -> int:
        """Return how many attempts of a job run now."""
        return sum(
            attempt.job_id == job_id and self.states.get(ray_id) is JobState.RUNNING
            for ray_id, attempt in self.attempts.items()
        )

    def _hold(self, ray_id: str, spec: JobSpec, selector: Mapping[str, str]) -> None:
        assert self.ray is not None
        env = spec.env
        job_id = ray_id.partition(".")[0]
        shape = {"GPU": spec.gpus} if spec.gpus else {}
        slots = [(selector["ray.io/node-id"], spec.gpus)] if "ray.io/node-id" in selector else []
        if "HYBRID_GROUP_BUNDLE" in env:
            slots = [(n, g) for n, g in json.loads(env["HYBRID_SLOTS"])]
            shape = {"GPU": float(json.loads(env["HYBRID_GROUP_BUNDLE"])["GPU"])}
        # What dies with its node must not be placed on another, as a task would be.
        nowhere = ((LabelConstraint(key="pinned", values=("nowhere",)),),)
        tasks = [Task(shape, 1e12, nowhere, node_id=n, ends_s=1e15) for n, _ in slots]
        for task in tasks:
            node = self.ray.nodes[task.node_id]
            assert self.ray.free(node).get("GPU", 0.0) >= task.shape.get("GPU", 0.0), "no room"
        self.ray.tasks += tasks
        before_s = self.done_s.get(env.get("HYBRID_RESUME_FROM", ""), 0.0)
        now_s = self.ray.clock.monotonic_s()
        self.attempts[ray_id] = SimAttempt(job_id, env, tasks, self.ray.clock, now_s, before_s)
        self.most_copies = max(self.most_copies, self.copies(job_id))

    def _answer(self, ray_id: str, attempt: SimAttempt) -> None:
        """Save a moment after the request, as a program does that looks for one now and then."""
        number = attempt.env.get("HYBRID_ATTEMPT", "1")
        raw = self.notes.get(f"job:{attempt.job_id}:{number}:ask")
        ask = json.loads(raw) if raw else None
        if ask is None or ask["why"] == "withdrawn" or attempt.job_id in self.deaf:
            return
        if ask != attempt.answered:
            attempt.answered = ask
            self.save(ray_id)

    def save(self, ray_id: str) -> str:
        """Let an attempt confirm a checkpoint now; return its URL."""
        attempt = self.attempts[ray_id]
        number = attempt.env.get("HYBRID_ATTEMPT", "1")
        url = f"{attempt.env['HYBRID_CHECKPOINT_URL']}/{number}-{attempt.done_s():.0f}"
        self.done_s[url] = attempt.done_s()
        note = {"url": url, "at_s": attempt.clock.now_s(), "step": int(attempt.done_s())}
        self.notes[f"job:{attempt.job_id}:{number}:saved"] = json.dumps(note).encode()
        return url

    def _end(self, ray_id: str, state: JobState) -> None:
        self.states[ray_id] = state
        for task in self.attempts[ray_id].tasks if ray_id in self.attempts else ():
            task.is_done = True

    def forget(self) -> None:
        """The head was restarted: Ray knows no job any more."""
        self.states.clear()

    def _reach(self) -> None:
        if self.is_silent:
            raise ClusterError("the dashboard does not answer")


@dataclass
class SimPackages:
    """See `hybrid.core.ports.Packages`."""

    stored: dict[str, bytes] = field(default_factory=dict)

    def put(self, name: str, content: bytes) -> None:
        self.stored[name] = content

    def get(self, name: str) -> bytes:
        if name not in self.stored:
            raise JobError(f"{name} is not stored")
        return self.stored[name]

    def keep_only(self, names: Collection[str]) -> None:
        self.stored = {k: v for k, v in self.stored.items() if k in names}


@dataclass
class SimJobLogs:
    """See `hybrid.core.ports.JobLogs`."""

    kept: dict[str, str] = field(default_factory=dict)

    def put(self, job_id: str, end: LogEnd) -> None:
        self.kept[job_id] = end.text

    def get(self, job_id: str) -> str | None:
        return self.kept.get(job_id)

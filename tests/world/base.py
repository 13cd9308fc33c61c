"""A head and hosts in memory, and a job runner that remembers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import JobError
from hybrid.core.models import JobSpec, JobState
from hybrid.core.ports import HostState, HostStatus, JobStatus
from tests.world.ray import SimRay


@dataclass
class SimHead:
    """See `hybrid.control.base.Head`."""

    ray: SimRay
    is_up: bool = False
    starts: int = 0

    def start(self) -> None:
        self.starts += 1
        if not self.is_up:
            self.is_up = True
            self.ray.add({"CPU": 1}, {"site": "onprem", "role": "head"}, is_head=True)

    def stop(self) -> None:
        self.is_up = False

    def is_alive(self) -> bool:
        return self.is_up

    def problem(self) -> str:
        return "" if self.is_up else "it is not running"


@dataclass
class SimFleet:
    """See `hybrid.core.ports.Fleet`."""

    ray: SimRay
    shapes: dict[str, Mapping[str, float]]
    joined: set[str] = field(default_factory=set)

    def hosts(self) -> Sequence[str]:
        return list(self.shapes)

    def join(self, host: str) -> None:
        if host not in self.joined:
            self.joined.add(host)
            labels = {"site": "onprem", "hybrid-host": host}
            self.ray.add(self.shapes[host], labels, host=host)

    def leave(self, host: str) -> None:
        self.joined.discard(host)

    def probe(self, host: str) -> HostStatus:
        state = HostState.JOINED if host in self.joined else HostState.ABSENT
        return HostStatus(host=host, state=state, shape=self.shapes[host])


@dataclass
class SimJobs:
    """See `hybrid.core.ports.JobRunner`."""

    submitted: dict[str, JobSpec] = field(default_factory=dict)
    states: dict[str, JobState] = field(default_factory=dict)

    def submit(self, job_id: str, spec: JobSpec, *, selector: Mapping[str, str]) -> None:
        if spec.entrypoint == "refuse":
            raise JobError("Ray refuses it")
        self.submitted.setdefault(job_id, spec)
        self.states.setdefault(job_id, JobState.RUNNING)

    def statuses(self) -> Mapping[str, JobStatus]:
        return {job_id: JobStatus(state=state) for job_id, state in self.states.items()}

    def stop(self, job_id: str) -> None:
        if self.states.get(job_id) is JobState.RUNNING:
            self.states[job_id] = JobState.CANCELLED

    def logs(self, job_id: str) -> str:
        return f"output of {job_id}\n"

    def follow_logs(self, job_id: str) -> Iterator[str]:
        yield self.logs(job_id)

    def upload(self, name: str, content: bytes) -> None:
        pass

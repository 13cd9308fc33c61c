"""Logs of jobs whose nodes share one machine, read from the nodes' folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hybrid.adapters.local_jobs import LocalJobs
from hybrid.core.models import JobState
from hybrid.core.ports import JobStatus
from tests.world.clock import VirtualClock


class WithoutRay(LocalJobs):
    """Answers for Ray: the job runs until `states` is used up."""

    states: Iterator[JobState]

    def statuses(self) -> Mapping[str, JobStatus]:
        return {"j-1": JobStatus(state=next(self.states))}


def make_jobs(ray_dir: Path, *states: JobState) -> WithoutRay:
    jobs = WithoutRay(
        "http://127.0.0.1:9", "", address="127.0.0.1:9", ray_dir=ray_dir, clock=VirtualClock()
    )
    jobs.states = iter(states)
    return jobs


def log_file(ray_dir: Path, node: str) -> Path:
    folder = ray_dir / node / "session_1" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "job-driver-j-1.log"


def test_a_log_is_the_heads_part_and_then_the_drivers(tmp_path: Path) -> None:
    log_file(tmp_path, "head").write_text("prepared\n")
    log_file(tmp_path, "abc").write_text("worked\n")

    assert make_jobs(tmp_path).logs("j-1") == "prepared\nworked\n"


def test_following_gives_each_byte_once_and_the_unfinished_last_line(tmp_path: Path) -> None:
    path = log_file(tmp_path, "abc")
    path.write_bytes("one\nhalf ü".encode())
    follow = make_jobs(
        tmp_path, JobState.RUNNING, JobState.RUNNING, JobState.SUCCEEDED
    ).follow_logs("j-1")

    pieces = [next(follow)]
    with path.open("ab") as file:
        file.write(b"ber\n")
    pieces.append(next(follow))
    with path.open("ab") as file:
        file.write(b"no newline")
    pieces += list(follow)

    assert pieces == ["one\n", "half über\n", "no newline"]

"""Logs of jobs whose nodes share one machine, read from the nodes' folders."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.adapters.local_jobs import LocalJobs
from hybrid.adapters.ray import RayJobs
from hybrid.adapters.text_files import PIECE_BYTES
from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import JobState
from hybrid.core.ports import JobStatus, LogEnd
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


class Elsewhere(WithoutRay):
    """Its driver runs on another machine."""

    def _find(self, job_id: str) -> Mapping[str, Any]:
        return {"driver_agent_http_address": "http://10.0.0.2:52365"}


def make_elsewhere(ray_dir: Path) -> Elsewhere:
    return Elsewhere(
        "http://127.0.0.1:9", "", address="10.0.0.1:9", ray_dir=ray_dir, clock=VirtualClock()
    )


def log_file(ray_dir: Path, node: str) -> Path:
    folder = ray_dir / node / "session_1" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "job-driver-j-1.log"


def test_a_log_is_the_heads_part_and_then_the_drivers(tmp_path: Path) -> None:
    log_file(tmp_path, "head").write_text("prepared\n")
    log_file(tmp_path, "abc").write_text("worked\n")

    assert "".join(make_jobs(tmp_path).logs("j-1")) == "prepared\nworked\n"


def test_half_a_log_is_none_when_the_other_half_cannot_be_had(tmp_path: Path) -> None:
    """Else its reader sees an output that breaks, and not why."""
    log_file(tmp_path, "head").write_text("prepared\n")

    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:9"):
        next(make_elsewhere(tmp_path).logs("j-1"))


def test_a_followed_driver_whose_machine_dies_ends_with_what_ray_says_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_file(tmp_path, "head")
    path.write_text("prepared\n")

    def dying(_jobs: RayJobs, _job_id: str) -> Iterator[str]:
        yield "worked\n"
        path.write_text("prepared\nthe driver died: its node has died")
        raise JobError("the log is gone")

    monkeypatch.setattr(RayJobs, "follow_logs", dying)
    jobs = make_elsewhere(tmp_path)
    jobs.states = iter([JobState.RUNNING])

    pieces = list(jobs.follow_logs("j-1"))

    assert pieces == ["prepared\n", "worked\n", "the driver died: its node has died"]


def test_following_a_log_that_was_gone_before_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_jobs: RayJobs, _job_id: str) -> Iterator[str]:
        yield ""
        raise JobError("the log is gone")

    monkeypatch.setattr(RayJobs, "follow_logs", gone)
    jobs = make_elsewhere(tmp_path)
    jobs.states = iter([JobState.FAILED])

    with pytest.raises(JobError, match="the log is gone"):
        list(jobs.follow_logs("j-1"))


def test_the_end_of_a_log_is_read_by_seeking(tmp_path: Path) -> None:
    """A log has no limit, the memory has: the file below holds 1 TiB of nothing."""
    log_file(tmp_path, "head").write_text("prepared\n")
    path = log_file(tmp_path, "abc")
    with path.open("wb") as file:
        file.truncate(2**40)
        file.seek(0, 2)
        file.write(b"failed\n")

    end = make_jobs(tmp_path).log_end("j-1", limit_bytes=9)

    assert end == LogEnd(text="\0\0failed\n", skipped_bytes=len("prepared\n") + 2**40 - 2)


def test_the_end_of_a_short_log_is_all_of_it(tmp_path: Path) -> None:
    log_file(tmp_path, "head").write_text("prepared\n")
    log_file(tmp_path, "abc").write_text("worked\n")
    jobs = make_jobs(tmp_path)

    assert jobs.log_end("j-1", limit_bytes=100) == LogEnd(text="prepared\nworked\n")
    assert jobs.log_end("j-1", limit_bytes=10).text == "ed\nworked\n"


def test_a_large_log_comes_in_pieces(tmp_path: Path) -> None:
    text = "ü€😀 and a line\n" * 50_000
    log_file(tmp_path, "abc").write_text(text)

    pieces = list(make_jobs(tmp_path).logs("j-1"))
    followed = list(make_jobs(tmp_path, JobState.SUCCEEDED).follow_logs("j-1"))

    assert "".join(pieces) == "".join(followed) == text
    assert max(len(piece.encode()) for piece in (*pieces, *followed)) <= PIECE_BYTES + 4


@pytest.mark.parametrize("start", ["", "a", "ab", "abc"])
def test_a_very_long_line_is_followed_without_cutting_a_character(
    tmp_path: Path, start: str
) -> None:
    text = start + "😀ü€" * 100_000
    log_file(tmp_path, "abc").write_text(text)
    follow = make_jobs(tmp_path, JobState.RUNNING, JobState.SUCCEEDED).follow_logs("j-1")

    assert "".join(follow) == text


def test_a_silent_log_still_lets_its_reader_go(tmp_path: Path) -> None:
    follow = make_jobs(tmp_path, JobState.RUNNING, JobState.RUNNING).follow_logs("j-1")

    assert next(follow) == next(follow) == ""


def test_nodes_may_leave_while_their_logs_are_looked_for(tmp_path: Path) -> None:
    """Folders vanish between the list of them and the look into them."""
    log_file(tmp_path, "stays").write_text("worked\n")
    jobs = make_jobs(tmp_path)
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            log_file(tmp_path, "goes").write_text("")
            shutil.rmtree(tmp_path / "goes")

    node = threading.Thread(target=come_and_go)
    node.start()
    try:
        for _ in range(2_000):
            assert jobs.log_end("j-1", limit_bytes=100).text == "worked\n"
    finally:
        is_over.set()
        node.join()


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

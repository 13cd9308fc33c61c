"""The controller's folders: state, packages, kept logs."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.adapters.job_logs import JobLogFolder
from hybrid.adapters.packages import UNCLAIMED_S, PackageFolder
from hybrid.adapters.state import AlreadyRunningError, StateFolder
from hybrid.core.errors import ClusterError, ConfigError, HybridError, JobError
from hybrid.core.ports import LogEnd
from tests.world.clock import VirtualClock


def test_a_second_controller_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    first = StateFolder(tmp_path / "s")
    first.open()

    with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()}"):
        StateFolder(tmp_path / "s").open()
    first.close()


def test_the_lock_of_a_killed_controller_is_free(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; "
        "from hybrid.adapters.state import StateFolder; "
        "s = StateFolder(Path(sys.argv[1])); s.open(); print('open', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "s")], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"open\n"

    holder.kill()
    holder.wait()
    holder.stdout.close()

    next_one = StateFolder(tmp_path / "s")
    next_one.open()
    next_one.close()


def test_secrets_are_made_once_and_readable_by_nobody_else(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "s")
    state.open()

    token = state.secret("api_token")
    state.close()

    assert len(token) == 64
    assert StateFolder(tmp_path / "s").secret("api_token") == token
    assert state.secret("other") != token
    assert stat.S_IMODE((tmp_path / "s" / "api_token").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700


def test_an_empty_secret_file_is_made_anew(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    (tmp_path / "api_token").write_text("\n")

    assert len(state.secret("api_token")) == 64


def test_a_state_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="state_dir"):
        StateFolder(tmp_path / "file" / "s").open()


def test_the_port_is_kept_while_it_is_free(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    port = state.remembered_port("127.0.0.1")

    assert state.remembered_port("127.0.0.1") == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen(1)
        assert state.remembered_port("127.0.0.1") != port


def test_a_port_of_an_ipv6_address_is_kept_too(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    port = state.remembered_port("::1")

    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::1", port))
        taken.listen(1)
        assert state.remembered_port("::1") not in (0, port)


def age(folder: Path, clock: VirtualClock, age_s: float) -> None:
    """Make every file of a folder so old."""
    for path in folder.iterdir():
        os.utime(path, (clock.now_s() - age_s,) * 2)


def test_packages_come_back_as_they_were(tmp_path: Path) -> None:
    clock = VirtualClock()
    packages = PackageFolder(tmp_path / "p", clock)

    packages.put("a.zip", b"one")
    packages.put("b.zip", b"two")
    age(tmp_path / "p", clock, UNCLAIMED_S)
    packages.keep_only({"b.zip"})

    assert packages.get("b.zip") == b"two"
    with pytest.raises(JobError, match="submit again"):
        packages.get("a.zip")


def test_a_package_waits_for_its_job(tmp_path: Path) -> None:
    """It is uploaded before the job that names it is there, and again by the next job."""
    clock = VirtualClock()
    packages = PackageFolder(tmp_path, clock)
    packages.put("a.zip", b"one")
    age(tmp_path, clock, UNCLAIMED_S - 1)
    packages.keep_only({"other.zip"})
    assert packages.get("a.zip") == b"one"

    age(tmp_path, clock, UNCLAIMED_S)
    packages.put("a.zip", b"one")
    packages.keep_only({"other.zip"})

    assert packages.get("a.zip") == b"one"


def test_a_draft_that_a_crash_left_behind_is_removed_in_time(tmp_path: Path) -> None:
    clock = VirtualClock()
    packages = PackageFolder(tmp_path, clock)
    (tmp_path / ".draft").write_bytes(b"half")
    age(tmp_path, clock, 1)
    packages.keep_only(())
    assert (tmp_path / ".draft").exists(), "somebody may be writing it"

    age(tmp_path, clock, UNCLAIMED_S)
    packages.keep_only(())

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_holds_nothing_to_forget(tmp_path: Path) -> None:
    PackageFolder(tmp_path / "nowhere", VirtualClock()).keep_only(())


def test_a_package_that_cannot_be_read_now_does_not_fail_its_job(tmp_path: Path) -> None:
    (tmp_path / "a.zip").mkdir()

    with pytest.raises(ClusterError, match="the job waits"):
        PackageFolder(tmp_path, VirtualClock()).get("a.zip")


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a\0b", "x" * 200])
def test_a_package_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(JobError):
        PackageFolder(tmp_path / "p", VirtualClock()).put(name, b"")


def test_a_package_without_room_says_where(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the folder should be")

    with pytest.raises(HybridError, match=str(tmp_path)):
        PackageFolder(tmp_path / "p", VirtualClock()).put("a.zip", b"")


def test_kept_logs_are_cut_at_the_front(tmp_path: Path) -> None:
    logs = JobLogFolder(tmp_path / "logs")
    logs.put("j-1", LogEnd(text="the end", skipped_bytes=8))
    logs.put("j-2", LogEnd(text="all of it"))

    assert logs.get("j-1") == "[the first 8 bytes are not kept]\nthe end"
    assert logs.get("j-2") == "all of it"
    assert logs.get("j-3") is None


@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_logs_of_the_jobs_that_ended_first_make_room(
    tmp_path: Path, is_restarted: bool
) -> None:
    def make() -> JobLogFolder:
        return JobLogFolder(tmp_path / "logs", kept_bytes=30_000)

    logs = make()
    for at_s, number in enumerate((3, 1, 2)):
        logs.put(f"j-{number}", LogEnd(text="x" * 10_000))
        os.utime(tmp_path / "logs" / f"j-{number}.log", (at_s, at_s))
    if is_restarted:
        logs = make()

    logs.put("j-4", LogEnd(text="y" * 8_000))

    assert [n for n in range(1, 5) if logs.get(f"j-{n}") is not None] == [1, 2, 4]
    sizes = [path.stat().st_size for path in (tmp_path / "logs").glob("j-*.log")]
    assert sum(sizes) <= 30_000


def test_the_draft_of_a_log_that_a_crash_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".j-1.log.1").write_text("half")

    JobLogFolder(tmp_path).put("j-2", LogEnd(text="x"))

    assert [path.name for path in tmp_path.iterdir()] == ["j-2.log"]


def test_one_log_that_is_larger_than_all_may_be_is_kept_alone(tmp_path: Path) -> None:
    logs = JobLogFolder(tmp_path, kept_bytes=5_000)
    logs.put("j-1", LogEnd(text="one"))

    logs.put("j-2", LogEnd(text="x" * 6_000))

    assert (logs.get("j-1"), logs.get("j-2")) == (None, "x" * 6_000)


def test_a_log_that_cannot_be_kept_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")

    JobLogFolder(tmp_path / "logs").put("j-1", LogEnd(text="x"))


def test_a_port_is_free_at_each_address(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    port = state.remembered_port("127.0.0.1", "127.0.0.2")

    with socket.socket() as other:
        other.bind(("127.0.0.2", port))
        other.listen()
        assert state.remembered_port("127.0.0.1", "") == port
        assert state.remembered_port("127.0.0.1", "127.0.0.2") != port
    with pytest.raises(ConfigError, match=r"free on 127\.0\.0\.1 and 192\.0\.2\.77; set"):
        state.remembered_port("127.0.0.1", "192.0.2.77")

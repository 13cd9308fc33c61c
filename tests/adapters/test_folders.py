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
from hybrid.adapters.packages import PackageFolder
from hybrid.adapters.state import AlreadyRunningError, StateFolder
from hybrid.core.errors import ConfigError, HybridError, JobError


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


def test_packages_come_back_as_they_were(tmp_path: Path) -> None:
    packages = PackageFolder(tmp_path / "p")

    packages.put("a.zip", b"one")
    packages.put("b.zip", b"two")
    packages.keep_only({"b.zip"})

    assert packages.get("b.zip") == b"two"
    with pytest.raises(JobError, match="submit again"):
        packages.get("a.zip")


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a\0b", "x" * 200])
def test_a_package_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(JobError):
        PackageFolder(tmp_path / "p").put(name, b"")


def test_a_package_without_room_says_where(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the folder should be")

    with pytest.raises(HybridError, match=str(tmp_path)):
        PackageFolder(tmp_path / "p").put("a.zip", b"")


def test_kept_logs_are_cut_at_the_front(tmp_path: Path) -> None:
    logs = JobLogFolder(tmp_path / "logs")
    logs.put("j-1", "start" + "x" * (8 * 2**20) + "end")

    kept = logs.get("j-1")

    assert kept is not None
    assert kept.startswith("[the first 8 bytes are not kept]\n")
    assert kept.endswith("end")
    assert logs.get("j-2") is None

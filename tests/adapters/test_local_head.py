"""The head on this machine: real processes, fake Ray."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.core.errors import FleetError
from hybrid.node.ports import is_free
from tests.adapters.local_base import LocalBase, local_base
from tests.node.box import wait_until

pytestmark = pytest.mark.slow

PORT = 22_730


@pytest.fixture
def base(tmp_path: Path) -> Iterator[LocalBase]:
    with local_base(tmp_path) as made:
        yield made


def kill(base: LocalBase, *names: str) -> None:
    for pid in base.pids():
        if not names or Path(f"/proc/{pid}/comm").read_text().strip() in names:
            os.kill(pid, signal.SIGKILL)


def test_a_head_starts_once_and_ends_whole(base: LocalBase) -> None:
    head = base.head()
    head.start()
    port = int(head.address.rpartition(":")[2])
    wait_until(lambda: not is_free(port), "the head to listen")
    before = base.settle("head")

    head.start()

    assert base.pids() == before
    assert head.is_alive()
    assert head.problem() == ""
    head.stop()
    assert not head.is_alive()
    assert base.pids() == []
    assert is_free(port)
    assert head.problem() == ""
    head.stop()


def test_another_controller_finds_the_head_where_it_was(base: LocalBase) -> None:
    base.head().start()
    first = base.head()
    address, url = first.address, first.dashboard_url
    before = base.settle("head")

    again = base.head()
    again.start()

    assert (again.address, again.dashboard_url) == (address, url)
    assert again.is_alive()
    assert base.pids() == before


def test_a_head_comes_back_on_its_old_ports(base: LocalBase) -> None:
    head = base.head()
    head.start()
    address = head.address
    head.stop()

    head.start()

    assert head.address == address


def test_an_address_is_not_known_before_it_is_chosen(base: LocalBase) -> None:
    with pytest.raises(FleetError, match=r"head\.port is auto and not chosen yet"):
        _ = base.head().address

    assert base.head(port=PORT).address == f"127.0.0.1:{PORT}"


def test_a_taken_port_is_named_with_its_holder_and_what_to_do(base: LocalBase) -> None:
    head = base.head(dashboard_port=PORT)

    with socket.create_server(("127.0.0.1", PORT)), pytest.raises(FleetError) as caught:
        head.start()

    message = str(caught.value)
    assert f"head.dashboard_port: port {PORT} is taken by " in message
    assert f"(pid {os.getpid()})" in message
    assert "set head.dashboard_port to another port or to auto" in message
    assert base.pids() == []


def test_a_killed_gcs_is_the_heads_end_and_its_problem(base: LocalBase) -> None:
    head = base.head()
    head.start()
    base.settle("head")

    kill(base, "gcs_server")

    problem = wait_until(head.problem, "the problem")
    assert problem == "Ray ended by itself: gcs_server was killed by SIGKILL"
    assert not head.is_alive()
    head.start()
    assert head.is_alive()
    assert head.problem() == ""


def test_a_head_that_was_killed_whole_says_so_and_starts_again(base: LocalBase) -> None:
    head = base.head()
    head.start()
    base.settle("head")
    for pid in base.pids():
        os.kill(pid, signal.SIGSTOP)
    kill(base)
    wait_until(lambda: not base.pids(), "all to be gone")

    assert "its processes were killed" in head.problem()

    head.start()
    assert head.is_alive()


def test_a_head_whose_start_fails_says_why(
    base: LocalBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY", "fail")
    head = base.head()

    head.start()

    assert "Version mismatch" in wait_until(head.problem, "the problem")


def test_a_folder_that_cannot_be_written_is_a_fleet_error(base: LocalBase) -> None:
    (base.folder / "nodes").touch()

    with pytest.raises(FleetError, match="cannot start the Ray head"):
        base.head().start()

    (base.folder / "nodes").unlink()

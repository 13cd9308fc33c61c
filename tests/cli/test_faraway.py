"""`hybrid down` of a cluster that is known by its address only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.client import discover
from tests.api.fake_service import FakeService
from tests.cli.conftest import Run
from tests.running import TOKEN, Running, write_record

pytestmark = pytest.mark.slow


@pytest.fixture
def faraway(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Run a cluster whose state folder is not among those of this user."""
    running = Running(tmp_path / "there" / "lab", FakeService())
    monkeypatch.setenv("HYBRID_ADDRESS", running.server.url)
    monkeypatch.setenv("HYBRID_TOKEN", TOKEN)
    yield running
    running.stop()


def end_when_asked(running: Running, *, is_all_returned: bool) -> threading.Thread:
    """Let the controller end after it was asked to close."""

    def follow() -> None:
        running.service.closed.wait(60)
        if is_all_returned:
            running.service.instance_count = 0
            threading.Event().wait(2)  # the head needs as long to stop
        running.stop()

    thread = threading.Thread(target=follow)
    thread.start()
    return thread


def test_down_closes_the_cluster_at_the_address(run: Run, faraway: Running, home: Path) -> None:
    write_record(home / "here", url="http://127.0.0.1:1")
    ending = end_when_asked(faraway, is_all_returned=True)

    shown = run("down", "-y")

    ending.join()
    assert shown.code == 0
    assert "is closed: its controller returned all" in shown.out
    assert faraway.service.state == "closing"
    assert discover.read_record(home / "here") is not None


def test_down_asks_before_it_closes_what_is_far_away(run: Run, faraway: Running) -> None:
    shown = run("down")

    assert shown.code == 2
    assert "job j-running (train), running" in shown.out
    assert not faraway.service.closed.is_set()


def test_an_end_before_all_was_returned_is_a_failure(run: Run, faraway: Running) -> None:
    ending = end_when_asked(faraway, is_all_returned=False)

    shown = run("down", "-y")

    ending.join()
    assert shown.code == 1
    assert "1 of its rented instances were not returned yet" in shown.err


def test_down_gives_up_watching_a_cluster_far_away(run: Run, faraway: Running) -> None:
    shown = run("down", "-y", "--timeout", "0s")

    assert shown.code == 5
    assert "it goes on" in shown.err
    assert faraway.service.closed.is_set()


def test_an_address_where_nobody_answers_is_no_clean_end(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("HYBRID_TOKEN", TOKEN)

    shown = run("down", "-y")

    assert shown.code == 5
    assert "http://127.0.0.1:1" in shown.err


def test_a_cluster_that_is_named_wins_over_the_address(run: Run, faraway: Running) -> None:
    shown = run("down", "-y", "-c", "lab")

    assert shown.code == 1
    assert not faraway.service.closed.is_set()

"""Tests that only the newest writer writes, however old ones are delayed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.adapters.ledger import SqlLedger, open_ledger, sqlite_url, store
from hybrid.core.errors import FencedError, LedgerError
from hybrid.core.models import Caps, OfferFailure
from hybrid.core.ports import Mode
from tests.adapters.ledger.builders import EXIT_S, NOW_S, make_event, make_instance, make_job
from tests.adapters.ledger.processes import line_from, say, start_program
from tests.postgres import PostgresServer

WRITES: dict[str, Callable[[SqlLedger], object]] = {
    "request": lambda ledger: ledger.request(
        make_instance("i-2"), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S
    ),
    "save": lambda ledger: ledger.save(make_instance("i-1"), make_event()),
    "append": lambda ledger: ledger.append(make_event()),
    "save_failure": lambda ledger: ledger.save_failure(
        OfferFailure(key="a", failure_count=1, until_s=1.0, error="E", message="m")
    ),
    "clear_failure": lambda ledger: ledger.clear_failure("a"),
    "set_mode": lambda ledger: ledger.set_mode(Mode(is_dry_run=True)),
    "save_job": lambda ledger: ledger.save_job(make_job(), make_event()),
    "mark_joined": lambda ledger: ledger.mark_joined("i-1", now_s=NOW_S),
}


def everything(ledger: SqlLedger) -> object:
    """Return all that the ledger holds."""
    return (
        ledger.instances(),
        ledger.events(),
        ledger.failures(),
        ledger.mode(),
        ledger.jobs(),
        ledger.spends(),
    )


def test_acquire_counts_up(ledger: SqlLedger, url: str) -> None:
    other = open_ledger(url)

    assert other.acquire("other", now_s=NOW_S) == ledger.epoch + 1
    assert ledger.acquire("test", now_s=NOW_S) == ledger.epoch == other.epoch + 1
    other.close()


@pytest.mark.parametrize("name", WRITES)
def test_an_old_writer_writes_nothing(ledger: SqlLedger, url: str, name: str) -> None:
    ledger.request(make_instance("i-1"), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
    new = open_ledger(url)
    new.acquire("the new one", now_s=NOW_S)
    before = everything(new)

    with pytest.raises(FencedError, match=r"'the new one' took over with epoch 2.*must stop"):
        WRITES[name](ledger)

    assert everything(new) == before
    new.close()


@pytest.mark.parametrize("name", WRITES)
def test_nobody_writes_before_acquire(url: str, name: str) -> None:
    ledger = open_ledger(url)

    with pytest.raises(FencedError, match="acquire it before writing"):
        WRITES[name](ledger)

    assert ledger.events() == ()
    ledger.close()


def test_check_epoch_tells_an_old_writer_at_once(ledger: SqlLedger, url: str) -> None:
    ledger.check_epoch()
    new = open_ledger(url)
    with pytest.raises(FencedError, match="acquire it before"):
        new.check_epoch()

    new.acquire("new", now_s=NOW_S)

    new.check_epoch()
    with pytest.raises(FencedError, match="took over"):
        ledger.check_epoch()
    new.close()


def test_readers_need_no_seat(ledger: SqlLedger, url: str) -> None:
    reader = open_ledger(url)

    assert everything(reader) == everything(ledger)
    reader.close()


def test_acquire_waits_for_a_write_that_has_begun(ledger: SqlLedger, url: str) -> None:
    new = open_ledger(url)
    taking = threading.Thread(target=new.acquire, args=("new",), kwargs={"now_s": NOW_S})

    with ledger._writing("hold the seat") as connection:
        taking.start()
        taking.join(timeout=0.3)
        is_waiting = taking.is_alive()
        ledger._add(connection, make_event("written_by_the_old_one"))
    taking.join()

    assert is_waiting
    assert new.epoch == 2
    assert [line.epoch for line in new.events()] == [1]
    with pytest.raises(FencedError):
        ledger.append(make_event())
    new.close()


def test_a_process_paused_between_writes_is_fenced_when_it_wakes(url: str) -> None:
    code = """
        ledger = open_ledger(sys.argv[1])
        ledger.acquire("old", now_s=NOW_S)
        ledger.append(make_event("by_the_old_one"))
        print("ready", flush=True)
        sys.stdin.readline()
        for write in (lambda: ledger.append(make_event("by_a_ghost")),
                      lambda: ledger.request(make_instance(), caps=Caps(), exit_s=1, now_s=NOW_S)):
            try:
                write()
            except FencedError:
                print("fenced", flush=True)
    """
    with start_program(code, url) as old:
        assert line_from(old) == "ready"
        os.kill(old.pid, signal.SIGSTOP)
        new = open_ledger(url)
        new.acquire("new", now_s=NOW_S)
        say(old, "go")
        os.kill(old.pid, signal.SIGCONT)

        assert [line_from(old), line_from(old)] == ["fenced", "fenced"]

    assert [line.kind for line in new.events()] == ["by_the_old_one"]
    assert new.instances() == ()
    new.close()


HOLD_THE_SEAT = """
    from hybrid.adapters.ledger import store
    store.WAIT_S = 2
    ledger = open_ledger(sys.argv[1])
    ledger.acquire("old", now_s=NOW_S)
    try:
        with ledger._writing("hold the seat") as connection:
            ledger._add(connection, make_event("by_a_ghost"))
            print("ready", flush=True)
            sys.stdin.readline()
    except LedgerError as err:
        print("refused", flush=True)
    else:
        print("written", flush=True)
"""


@pytest.mark.slow
@pytest.mark.postgres
def test_postgresql_cuts_a_writer_that_was_paused_inside_a_write(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.new_schema()
    with start_program(HOLD_THE_SEAT, url) as old:
        assert line_from(old) == "ready"
        os.kill(old.pid, signal.SIGSTOP)
        new = open_ledger(url)

        new.acquire("new", now_s=NOW_S)

        say(old, "go")
        os.kill(old.pid, signal.SIGCONT)
        assert line_from(old) == "refused"
    assert new.events() == ()
    new.close()


@pytest.mark.slow
def test_sqlite_says_that_a_paused_writer_holds_the_file(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sqlite_url(sqlite_path)
    monkeypatch.setattr(store, "WAIT_S", 0.2)
    with start_program(HOLD_THE_SEAT, url) as old:
        assert line_from(old) == "ready"
        new = open_ledger(url)

        with pytest.raises(LedgerError, match=r"another process keeps it locked.*paused"):
            new.acquire("new", now_s=NOW_S)

        assert new.epoch == 0
        old.kill()
    assert new.acquire("new", now_s=NOW_S) == 2
    assert new.events() == ()
    new.close()


@pytest.mark.slow
def test_epochs_never_go_back_in_the_history_of_fighting_writers(url: str) -> None:
    code = """
        ledger = open_ledger(sys.argv[1])
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(20):
            ledger.acquire(str(os.getpid()), now_s=NOW_S)
            try:
                for _ in range(5):
                    ledger.append(make_event())
            except FencedError:
                pass
        ledger.close()
    """
    open_ledger(url).close()
    fighters = [start_program(code, url) for _ in range(3)]
    for fighter in fighters:
        assert line_from(fighter) == "ready"
    for fighter in fighters:
        say(fighter, "go")
    errors = [fighter.communicate(timeout=120)[1] for fighter in fighters]

    judge = open_ledger(url)
    epochs = [line.epoch for line in judge.events(limit=10_000)]

    assert errors == ["", "", ""]
    assert judge.acquire("judge", now_s=NOW_S) == 3 * 20 + 1
    assert epochs
    assert epochs == sorted(epochs)
    judge.close()

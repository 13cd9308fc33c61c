"""Tests of disks that are full, closed to us, damaged or swapped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.core.errors import LedgerError
from hybrid.core.models import Caps
from tests.adapters.ledger.builders import EXIT_S, NOW_S, make_event, make_instance
from tests.adapters.ledger.processes import bare_sql, run_program
from tests.lacking import lacking

# --- full ---------------------------------------------------------------------------------

TRY_AT_EVERY_FREE_SIZE = """
    import json

    def try_at_every_free_size(ledger, leave_free, sizes):
        '''Ask once at each size of free room; what is stored must be what was promised.'''
        ledger.request(make_instance("i-first"), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
        promised, problems = ["i-first"], []
        for size in sizes:
            name = f"i-{size:06}"
            leave_free(size)
            try:
                ledger.request(make_instance(name), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
                promised.append(name)
            except LedgerError as err:
                problems.append(str(err))
            stored = sorted(i.instance_id for i in ledger.live_instances())
            assert stored == sorted(promised), (size, stored, promised)
        leave_free(None)
        ledger.request(make_instance("i-last"), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
        promised.append("i-last")
        ledger.close()
        again = open_ledger(sys.argv[1])
        assert sorted(i.instance_id for i in again.live_instances()) == sorted(promised)
        assert sorted(e.subject for e in again.events()) == sorted(promised)
        print(json.dumps({"promised": len(promised), "problems": problems}))
"""

ON_A_FULL_DISK = (
    TRY_AT_EVERY_FREE_SIZE
    + """
    import subprocess
    from pathlib import Path

    folder = Path(sys.argv[2])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    filler = folder / "filler"

    def leave_free(size):
        filler.unlink(missing_ok=True)
        if size is None:
            return
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
            file.truncate(max(0, file.tell() - size))

    ledger = open_ledger(sys.argv[1])
    ledger.acquire("test", now_s=NOW_S)
    try_at_every_free_size(ledger, leave_free, range(0, 15 * 4096, 4096))
    leave_free(0)
    try:
        open_ledger(sqlite_url(folder / "new.db"))
    except LedgerError as err:
        print(err)
"""
)

AT_A_FILE_SIZE_LIMIT = (
    TRY_AT_EVERY_FREE_SIZE
    + """
    import resource
    from pathlib import Path

    def leave_free(size):
        limit = resource.RLIM_INFINITY
        if size is not None:
            limit = Path(sys.argv[2]).stat().st_size + size
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    ledger = open_ledger(sys.argv[1])
    ledger.acquire("test", now_s=NOW_S)
    try_at_every_free_size(ledger, leave_free, range(0, 30_000, 1_500))
"""
)


def own_mounts() -> list[str]:
    """Return the command that gives a program mounts of its own, or skip."""
    command = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "-r"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        lacking("this machine does not let us mount a small disk")
    return command


def test_on_a_full_disk_an_intent_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    wrapper = own_mounts()
    url = sqlite_url(tmp_path / "ledger.db")

    status, out, err = run_program(ON_A_FULL_DISK, url, str(tmp_path), wrapper=wrapper)

    assert status == 0, err
    tried, opened = out.splitlines()
    answer = json.loads(tried)
    assert answer["promised"] > 2
    assert len(answer["problems"]) > 2
    for problem in [*answer["problems"], opened]:
        assert "the disk is full" in problem
        assert "free some space" in problem


def test_at_a_file_size_limit_an_intent_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    status, out, err = run_program(AT_A_FILE_SIZE_LIMIT, sqlite_url(path), f"{path}-wal")

    assert status == 0, err
    answer = json.loads(out)
    assert answer["promised"] > 2
    assert len(answer["problems"]) > 2
    for problem in answer["problems"]:
        assert "the disk" in problem


# --- closed to us -------------------------------------------------------------------------


def open_without_the_powers_of_root(url: str) -> str:
    """Return the error of a program that is bound by the permissions of files."""
    code = """
        try:
            open_ledger(sys.argv[1]).acquire("test", now_s=NOW_S)
        except LedgerError as err:
            print(err)
    """
    powers = "--bounding-set=-dac_override,-dac_read_search"
    wrapper = ["setpriv", powers] if os.geteuid() == 0 else []
    status, out, err = run_program(code, url, wrapper=wrapper)
    assert status == 0, err
    return out


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["no-write", "no-entry"])
def test_a_folder_without_rights_is_named_with_what_to_do(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)

    problem = open_without_the_powers_of_root(sqlite_url(tmp_path / "ledger.db"))

    tmp_path.chmod(0o700)
    assert problem.startswith(f"cannot open: ledger {tmp_path}/ledger.db: ")
    assert "this user may not write it" in problem
    assert "give this user the right" in problem


def test_a_read_only_file_is_named_with_what_to_do(sqlite_path: Path) -> None:
    open_ledger(sqlite_url(sqlite_path)).close()
    sqlite_path.chmod(0o444)

    problem = open_without_the_powers_of_root(sqlite_url(sqlite_path))

    assert f"ledger {sqlite_path}: " in problem
    assert "this user may not write it" in problem


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"/gone/ledger.db: it cannot be opened.*its folder"):
        open_ledger(sqlite_url(tmp_path / "gone" / "ledger.db"))


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="it cannot be opened"):
        open_ledger(sqlite_url(tmp_path))


def test_the_file_is_for_its_owner_only(sqlite_path: Path) -> None:
    ledger = open_ledger(sqlite_url(sqlite_path))
    ledger.acquire("test", now_s=NOW_S)

    modes = {path.name: path.stat().st_mode & 0o777 for path in sqlite_path.parent.iterdir()}

    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
    ledger.close()


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "what?.db", "no#1.db", "账本.db", "a&b=c.db"])
def test_a_path_may_hold_any_character(tmp_path: Path, name: str) -> None:
    ledger = open_ledger(sqlite_url(tmp_path / name))
    ledger.acquire("test", now_s=NOW_S)
    ledger.close()

    assert [path.name for path in tmp_path.iterdir()] == [name]


# --- damaged ------------------------------------------------------------------------------


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(sqlite_path: Path) -> None:
    sqlite_path.write_bytes(b"This is my thesis, not a ledger. " * 100)
    before = sqlite_path.read_bytes()

    with pytest.raises(LedgerError, match=r"damaged, or it is not a ledger .*backup.*tag"):
        open_ledger(sqlite_url(sqlite_path))

    assert sqlite_path.read_bytes() == before


def test_a_damaged_page_is_an_error_and_never_an_empty_answer(sqlite_path: Path) -> None:
    ledger = open_ledger(sqlite_url(sqlite_path))
    ledger.acquire("test", now_s=NOW_S)
    for number in range(50):
        ledger.request(make_instance(f"i-{number}"), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
    ledger.close()
    content = bytearray(sqlite_path.read_bytes())
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    sqlite_path.write_bytes(content)

    with pytest.raises(LedgerError, match="damaged"):
        open_ledger(sqlite_url(sqlite_path)).live_instances()


@pytest.mark.parametrize("body", ["{", "{}", '{"future_field": 1}', ""])
def test_a_damaged_row_is_an_error_and_never_skipped(url: str, body: str) -> None:
    ledger = open_ledger(url)
    ledger.acquire("test", now_s=NOW_S)
    ledger.request(make_instance(), caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
    with bare_sql(url) as connection:
        connection.execute(sa.text("UPDATE instances SET body = :b"), {"b": body})

    with pytest.raises(LedgerError, match="row of instance 'i-1' cannot be read"):
        ledger.live_instances()

    ledger.close()


# --- swapped ------------------------------------------------------------------------------


def test_a_ledger_deleted_while_in_use_takes_no_more_promises(sqlite_path: Path) -> None:
    ledger = open_ledger(sqlite_url(sqlite_path))
    ledger.acquire("test", now_s=NOW_S)
    for path in sqlite_path.parent.iterdir():
        path.unlink()

    with pytest.raises(LedgerError, match="was deleted or replaced"):
        ledger.append(make_event())
    with pytest.raises(LedgerError, match="was deleted or replaced"):
        ledger.check_epoch()

    ledger.close()


def test_a_ledger_replaced_by_another_takes_no_more_promises(
    sqlite_path: Path, tmp_path: Path
) -> None:
    ledger = open_ledger(sqlite_url(sqlite_path))
    ledger.acquire("test", now_s=NOW_S)
    open_ledger(sqlite_url(tmp_path / "other.db")).close()
    (tmp_path / "other.db").replace(sqlite_path)

    with pytest.raises(LedgerError, match="put the same file back at once"):
        ledger.append(make_event())

    ledger.close()

"""The wrapper, with real shells and processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hybrid.job import messages, wrapper
from hybrid.job.context import NOTES, context
from tests.job.conftest import Memory

ASK, SAVED = messages.ask_key("j-1", 2), messages.saved_key("j-1", 2)
PYTHON = sys.executable
LIMIT_S = 60.0


def until(is_so: Callable[[], object], what: str) -> None:
    limit_s = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < limit_s, f"never: {what}"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def run(memory: Memory, handlers: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Run a command under the wrapper in this process."""

    def run(command: str) -> int:
        monkeypatch.setenv("HYBRID_ENTRYPOINT", command)
        return wrapper.main()

    return run


@contextmanager
def started(command: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the wrapper as Ray does: a process of its own, here without a cluster."""
    given = {**os.environ, "HYBRID_JOB_ID": "j-1", "HYBRID_ENTRYPOINT": command, **env}
    process = subprocess.Popen(
        [PYTHON, "-m", "hybrid.job"],
        env=given,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 3", 3), ("exit 75", 75), ("kill -9 $$", 137), ("no-such-program", 127)],
)
def test_the_exit_code_is_that_of_the_command(
    run: Callable[[str], int], command: str, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == code


def test_output_is_not_touched(
    run: Callable[[str], int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(r"printf 'a\r\tb'; printf 'wrong\n' >&2; printf c") == 0
    assert capfd.readouterr() == ("a\r\tbc", "wrong\n")


def test_outside_of_a_job_it_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert wrapper.main() == 2
    assert "is started by hybrid" in capsys.readouterr().out


def test_a_checkpoint_is_told_even_if_the_command_ends_right_after(
    run: Callable[[str], int], memory: Memory
) -> None:
    save = "import hybrid; hybrid.checkpoint_saved(step=5); hybrid.checkpoint_exit()"
    assert run(f'{PYTHON} -c "{save}"') == 75
    saved = messages.parse_saved(memory.notes[SAVED])
    assert saved is not None
    assert (saved.url, saved.step) == ("/saved/j-1", 5)


def test_a_command_that_dies_while_it_saves_has_confirmed_nothing_new(
    run: Callable[[str], int], memory: Memory, capfd: pytest.CaptureFixture[str]
) -> None:
    script = (
        "import os, hybrid; hybrid.checkpoint_saved('/a', step=1); "
        "open(os.environ['HYBRID_NOTES_DIR'] + '/saved.1.1', 'w').write('{'); "
        "os.kill(os.getpid(), 9)"
    )
    assert run(f'{PYTHON} -c "{script}"') == 137
    saved = messages.parse_saved(memory.notes[SAVED])
    assert saved is not None
    assert saved.step == 1


def test_a_request_arrives_as_a_note_and_without_being_wished_as_no_signal(
    run: Callable[[str], int], memory: Memory, capfd: pytest.CaptureFixture[str]
) -> None:
    memory.notes[ASK] = messages.encode({"why": "move", "by_s": 1.0})
    command = (
        f'trap "echo SIGNAL" USR1; until [ -e ${NOTES}/ask ]; do sleep 0.02; done; cat ${NOTES}/ask'
    )
    assert run(command) == 0
    assert capfd.readouterr().out.rstrip() == memory.notes[ASK].decode()


@pytest.mark.slow
def test_a_request_is_a_signal_for_who_wishes_one_and_its_withdrawal_is_none(
    run: Callable[[str], int],
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HYBRID_SAVE_SIGNAL", "USR1")
    memory.notes[ASK] = messages.encode({"why": "withdrawn", "by_s": 1.0})

    def ask_later() -> None:
        until(lambda: memory.get_count >= 1, "a first look")
        memory.notes[ASK] = messages.encode({"why": "move", "by_s": 1.0})

    asker = threading.Thread(target=ask_later)
    asker.start()
    assert run("trap 'echo SIGNAL; exit 75' USR1; while :; do sleep 0.05; done") == 75
    asker.join()
    assert capfd.readouterr().out == "SIGNAL\n"


def test_a_head_that_is_away_delays_the_notes_and_is_told_once(
    run: Callable[[str], int], memory: Memory, capfd: pytest.CaptureFixture[str]
) -> None:
    memory.is_away = True

    def come_back() -> None:
        until(lambda: memory.get_count >= 0 and reached.is_set(), "the command's end")
        memory.is_away = False

    reached = threading.Event()
    back = threading.Thread(target=come_back)
    back.start()
    timer = threading.Timer(0.5, reached.set)
    timer.start()
    save = "import hybrid; hybrid.checkpoint_saved(step=5)"
    assert run(f'{PYTHON} -c "{save}"') == 0
    back.join()
    assert b'"step": 5' in memory.notes[SAVED]
    assert capfd.readouterr().err.count("cannot tell the controller") == 1


def test_a_full_disk_does_not_keep_a_job_from_starting(
    run: Callable[[str], int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert run(f"test -d ${NOTES}") == 0


def test_requests_are_written_over_bytes_that_a_full_disk_cannot_take(memory: Memory) -> None:
    here = context()
    assert here is not None
    notes = wrapper._notes_folder()
    messenger = wrapper.Messenger(here, notes, lambda _number: None)
    room = (notes / "ask.room").stat()
    for why in ("move", "withdrawn", "preempt"):
        memory.notes[ASK] = messages.encode({"why": why, "by_s": 1.0})
        messenger._look(memory)
        note = (notes / "ask").stat()
        assert (note.st_ino, note.st_size) == (room.st_ino, room.st_size)
        assert messages.parse_ask((notes / "ask").read_bytes()) == messages.Ask(why, 1.0)
    shutil.rmtree(notes)


def test_notes_are_removed(run: Callable[[str], int], tmp_path: Path) -> None:
    place = tmp_path / "place"
    assert run(f"echo ${NOTES} > {place}") == 0
    assert not Path(place.read_text().strip()).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_command_which_may_end_in_its_own_way(number: signal.Signals) -> None:
    command = "trap 'echo ending; exit 9' TERM INT; echo up; while :; do sleep 0.05; done"
    with started(command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        assert process.wait(timeout=LIMIT_S) == 9
        assert process.stdout.read() == b"ending\n"


def test_nothing_survives_a_wrapper_that_is_killed(tmp_path: Path) -> None:
    """Not what ignores signals, not what left the group, as workers of torchrun do."""
    pids = tmp_path / "pids"
    leave = "import os, sys, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
    command = (
        f"trap '' TERM INT HUP; {PYTHON} -c '{leave}' >> {pids} & sleep 600 & echo $! >> {pids}; "
        f"echo $$ >> {pids}; echo ${NOTES} > {tmp_path}/notes; wait"
    )
    with started(command) as process:
        until(lambda: pids.exists() and len(pids.read_text().split()) == 3, "three processes")
        until(
            lambda: (tmp_path / "notes").exists() and (tmp_path / "notes").read_text(), "a folder"
        )
        found = [int(pid) for pid in pids.read_text().split()]
        assert all(lives(pid) for pid in found)
        process.send_signal(signal.SIGTERM)
        process.kill()
        process.wait()
        until(lambda: not any(lives(pid) for pid in found), "their end")
        notes = Path((tmp_path / "notes").read_text().strip())
        until(lambda: not notes.exists(), "the end of the notes")


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with started(f"setsid sleep 600 & echo $! > {pid}; sleep 0.2") as process:
        assert process.wait(timeout=LIMIT_S) == 0
        until(lambda: not lives(int(pid.read_text())), "its end")

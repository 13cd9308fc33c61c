"""Runs a job's command, hands it requests to save, and tells the controller what it saved.

The user's command is a shell process of its own, or, where a placement group holds the job's
nodes, a Python program inside that group (`hybrid.job.group`). Its output is not touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hybrid.job import messages, signals
from hybrid.job.context import ENVIRONMENT, NOTES, Context, context
from hybrid.job.data import stage_all
from hybrid.job.store import Store, store_of

_LOOK_EVERY_S = 1.0
_FORWARD_EVERY_S = 0.2
_GUARD = """trap '' HUP INT TERM USR1; read -r _; "$0" -I -S "$1" "$2"; kill -9 0"""
_ROOM = "ask.room"
_ROOM_BYTES = 512
_AWAY_S = 60.0
"""Ray itself ends what cannot reach its head for a minute."""


def main() -> int:
    """Run the command of the environment; return its exit code."""
    here = context()
    command = ENVIRONMENT.get("HYBRID_ENTRYPOINT", "")
    if here is None or not command:
        print("python -m hybrid.job is started by hybrid, for a job; see docs/checkpoints.md")
        return 2
    try:
        notes = _notes_folder()
    except OSError as error:
        print(f"hybrid: no folder for the job's notes: {error}; make room there", file=sys.stderr)
        return 1
    os.environ[NOTES] = str(notes)
    try:
        if here.bundle:
            from hybrid.job.group import run_in_group

            return run_in_group(here, command, lambda send: Messenger(here, notes, send))
        if not stage_all():
            return 1
        return _run(here, command, notes)
    finally:
        shutil.rmtree(notes, ignore_errors=True)


def _notes_folder() -> Path:
    """Return a new folder for notes, in memory if the disk is full; it holds room for a request."""
    last: OSError | None = None
    for place in (None, "/dev/shm"):  # noqa: S108
        try:
            notes = Path(tempfile.mkdtemp(prefix="hybrid-job-", dir=place))
            (notes / _ROOM).write_bytes(b" " * _ROOM_BYTES)
        except OSError as error:
            last = error
        else:
            return notes
    raise last or OSError("no place")


def _run(here: Context, command: str, notes: Path) -> int:
    """Run a shell command as a child; return its exit code, 128 and more for a signal."""
    with _leash(f"{NOTES}={notes}") as group:

        def pass_on(number: int, _frame: FrameType | None) -> None:
            os.killpg(group, number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, pass_on)
        child = subprocess.Popen(command, shell=True, process_group=group)  # noqa: S602
        with Messenger(here, notes, lambda number: _tell(number, group)):
            code = child.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _leash(mark: str) -> Iterator[int]:
    """Yield a process group of which nothing survives this process, however it ends.

    Ray kills the wrapper's own group only. So a guard in the command's group holds a pipe to the
    wrapper; when that breaks, the guard kills what left the group (by its environment, which has
    the mark), the group, and itself. No copy of a job may go on while its next attempt runs.
    """
    its_end, our_end = os.pipe()
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, sys.executable, str(Path(__file__).with_name("guard.py")), mark],
        stdin=its_end,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    os.close(its_end)
    try:
        yield guard.pid
    finally:
        os.close(our_end)
        guard.wait()


def _tell(number: int, group: int) -> None:
    if not signals.tell(number, signals.members(group)):
        print("hybrid: no process of this job handles the signal to save", file=sys.stderr)


class Messenger:
    """Carries notes between the controller and the command, in a thread of its own."""

    def __init__(self, here: Context, notes: Path, send: Callable[[int], None]) -> None:
        """Remember whom to tell.

        Args:
            here: The attempt.
            notes: Folder that the command reads and writes.
            send: Sends a signal to the command.
        """
        self._here, self._notes, self._send = here, notes, send
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._ask: bytes | None = None
        self._saved: bytes | None = None

    def __enter__(self) -> Messenger:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Tell what was saved last, and end."""
        self._is_over.set()
        self._thread.join(timeout=_AWAY_S + 10.0)

    def _work(self) -> None:
        # Ray is imported here, beside the command: it takes a second of a core.
        store: Store | None = None
        look_at_s = away_at_s = 0.0
        while True:
            is_last = self._is_over.is_set()
            now_s = time.monotonic()
            try:
                store = store or store_of()
                if store is None:
                    return  # no cluster to talk to
                self._forward(store)
                if now_s >= look_at_s:
                    look_at_s = now_s + _LOOK_EVERY_S
                    self._look(store)
                away_at_s = 0.0
            except Exception as error:  # noqa: BLE001  # Ray's head may be away for a while
                if not away_at_s:
                    away_at_s = now_s
                    print(f"hybrid: cannot tell the controller, will try: {error}", file=sys.stderr)
                # What was saved last decides where the next attempt goes on.
                is_last = is_last and now_s - away_at_s >= _AWAY_S
                time.sleep(_FORWARD_EVERY_S)
            if is_last:
                return
            self._is_over.wait(_LOOK_EVERY_S if away_at_s else _FORWARD_EVERY_S)

    def _forward(self, store: Store) -> None:
        try:
            saved = (self._notes / "saved").read_bytes()
        except FileNotFoundError:
            return
        if saved != self._saved:
            store.put(messages.saved_key(self._here.job_id, self._here.attempt), saved)
            self._saved = saved

    def _look(self, store: Store) -> None:
        ask = store.get(messages.ask_key(self._here.job_id, self._here.attempt))
        if ask is None or ask == self._ask:
            return
        # Over bytes that are there already, since the disk may have become full.
        room, note = self._notes / _ROOM, self._notes / "ask"
        with (room if room.exists() else note).open("r+b") as file:
            file.write(ask.ljust(_ROOM_BYTES))
        if room.exists():
            room.replace(note)
        self._ask = ask
        found = messages.parse_ask(ask)
        number = signals.SAVE_SIGNALS.get(ENVIRONMENT.get("HYBRID_SAVE_SIGNAL", ""))
        if number is not None and found is not None and found.why != "withdrawn":
            self._send(number)

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
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from hybrid.job import messages
from hybrid.job.context import ENVIRONMENT, NOTES, Context, context
from hybrid.job.store import Store, store_of

_LOOK_EVERY_S = 1.0
_FORWARD_EVERY_S = 0.2
_SIGNALS = {"USR1": signal.SIGUSR1, "TERM": signal.SIGTERM}


def main() -> int:
    """Run the command of the environment; return its exit code."""
    here = context()
    command = ENVIRONMENT.get("HYBRID_ENTRYPOINT", "")
    if here is None or not command:
        print("python -m hybrid.job is started by hybrid, for a job; see docs/checkpoints.md")
        return 2
    notes = Path(tempfile.mkdtemp(prefix="hybrid-job-"))
    os.environ[NOTES] = str(notes)
    try:
        if here.bundle:
            from hybrid.job.group import run_in_group

            return run_in_group(here, command, lambda send: Messenger(here, notes, send))
        return _run(here, command, notes)
    finally:
        shutil.rmtree(notes, ignore_errors=True)


def _run(here: Context, command: str, notes: Path) -> int:
    """Run a shell command as a child; return its exit code, 128 and more for a signal."""
    child = subprocess.Popen(command, shell=True, start_new_session=True)  # noqa: S602

    def send(number: int) -> None:
        if child.poll() is None:
            os.killpg(child.pid, number)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        send(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    with Messenger(here, notes, send):
        code = child.wait()
    return code if code >= 0 else 128 - code


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
        self._thread.join(timeout=10.0)

    def _work(self) -> None:
        # Ray is imported here, beside the command: it takes a second of a core.
        store = self._open()
        if store is None:
            return
        waited_s = _LOOK_EVERY_S
        while True:
            is_last = self._is_over.wait(_FORWARD_EVERY_S)
            waited_s += _FORWARD_EVERY_S
            try:
                self._forward(store)
                if waited_s >= _LOOK_EVERY_S:
                    waited_s = 0.0
                    self._look(store)
            except Exception as error:  # noqa: BLE001  # Ray's head may be away for a while
                print(f"hybrid: cannot reach Ray's head: {error}", file=sys.stderr)
                self._is_over.wait(5.0)
            if is_last:
                return

    def _open(self) -> Store | None:
        try:
            return store_of()
        except Exception as error:  # noqa: BLE001  # the command is worth more than its messages
            print(f"hybrid: this job cannot be asked to save: {error}", file=sys.stderr)
            return None

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
        self._ask = ask
        part = self._notes / "ask.part"
        part.write_bytes(ask)
        part.replace(self._notes / "ask")
        found = messages.parse_ask(ask)
        number = _SIGNALS.get(ENVIRONMENT.get("HYBRID_SAVE_SIGNAL", ""))
        if number is not None and found is not None and found.why != "withdrawn":
            self._send(number)

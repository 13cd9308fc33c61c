"""One instance: a folder with its record, and the node program that lives in it.

record.json  what was launched, under which token, for whom (written before anything runs)
lease        until when the instance lives, seconds since the epoch
join_token   gone once it was used
gone.json    when the instance was first seen to be gone
and the files of `hybrid.node`: node.json, pid.json, status.json, stop, ...
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import hybrid.core
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Model
from hybrid.core.tags import OFFER

_PROGRAM = Path(hybrid.core.__file__).parents[1] / "node" / "__main__.py"
_TAG = "HYBRID_NODE_TAG"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_CALL_LIMIT_S = 60.0
_RUNNING_ALREADY = 3
_STOP_ORDERED = 4
_TELLING = ("failed", "exited", "stopped")  # phases whose problem is the machine's end


class Record(Model):
    """What was rented. Never changes."""

    provider_id: str
    token: str
    offer_id: str
    spec: LaunchSpec
    launched_at_s: float


class MachineError(Exception):
    """The node program could not be called; the message says why."""


class Machine:
    """Access to one instance."""

    def __init__(self, path: Path, record: Record) -> None:
        self.path = path
        self.record = record

    @property
    def tag(self) -> str:
        """What marks every process of it."""
        return f"{self.record.spec.cluster_id}/{self.path.name}"

    @property
    def is_gone(self) -> bool:
        """Whether it was proved gone."""
        return (self.path / "gone.json").exists()

    def gone_at_s(self) -> float | None:
        """Return when it was first seen to be gone."""
        at_s = _read(self.path / "gone.json").get("at_s")
        return float(at_s) if isinstance(at_s, int | float) else None

    def start(self) -> None:
        """Start its node unless it was started or stopped before.

        Raises:
            MachineError: It could not be started; trying again may help.
        """
        if not self.is_gone and not self._was_started:
            self._call("start", accepted=(_RUNNING_ALREADY, _STOP_ORDERED))

    def stop(self) -> None:
        """Order its end and return; a process of its own sees to it.

        Raises:
            MachineError: The order could not be given.
        """
        if not self._is_being_stopped():
            self._call("stop", "--detach")

    def extend(self, until_s: float) -> None:
        """Move its lease. Raises `OSError`."""
        write(self.path / "lease", f"{until_s:.3f}")

    def look(self, *, now_s: float) -> CloudInstance:
        """Return it as a cloud would list it, and note when it is gone."""
        expires_at_s = self._expires_at_s()
        is_expired = expires_at_s is not None and now_s > expires_at_s
        state, problem = self._state(is_expired=is_expired)
        if state is CloudState.GONE and not self.is_gone:
            write(self.path / "gone.json", json.dumps({"at_s": now_s}))
        return CloudInstance(
            instance_id=self.record.spec.instance_id,
            provider_id=self.record.provider_id,
            state=state,
            launched_at_s=self.record.launched_at_s,
            expires_at_s=expires_at_s,
            offer_mark=self.record.spec.tags.get(OFFER, ""),
            problem=problem,
        )

    def _state(self, *, is_expired: bool) -> tuple[CloudState, str]:
        was_started = self._was_started
        is_looked_after = _is_alive(_read(self.path / "pid.json"))
        status = _read(self.path / "status.json")
        phase, problem = str(status.get("phase")), str(status.get("problem") or "")
        problem = problem if phase in _TELLING else ""
        if self.is_gone:
            return CloudState.GONE, problem
        stop = self.path / "stop"
        if is_expired and not was_started:
            stop.touch()  # it must not start any more, or it could come back from the dead
        # The look for processes comes last: what it finds missing after the facts above were
        # read cannot come to life again.
        if not is_looked_after and not has_processes(self.tag):
            if was_started or stop.exists():
                return CloudState.GONE, problem
            return CloudState.PENDING, ""  # the record is written, the process comes next
        if stop.exists() or phase == "stopped":
            return CloudState.STOPPING, problem
        if was_started and not is_looked_after:
            lost = "the program that looks after this node was killed; its other processes go on"
            return CloudState.RUNNING, problem or lost
        if phase in ("None", "booting"):
            return CloudState.PENDING, ""
        return CloudState.RUNNING, problem

    @property
    def _was_started(self) -> bool:
        return (self.path / "pid.json").exists()

    def _expires_at_s(self) -> float | None:
        try:
            return float((self.path / "lease").read_text())
        except (OSError, ValueError):
            return None

    def _is_being_stopped(self) -> bool:
        """Return whether the process of an earlier order is still at work: it has a lock."""
        try:
            with (self.path / "stop.lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _call(self, verb: str, *more: str, accepted: tuple[int, ...] = ()) -> None:
        # The mark is there from the first moment, so that a stop finds even a process that has
        # not written its id yet; a stop has none, or it would find itself.
        mark = [f"{_TAG}={self.tag}"] if verb == "start" else [f"--unset={_TAG}"]
        command = ["env", *mark, sys.executable, "-P", str(_PROGRAM)]
        try:
            done = subprocess.run(
                [*command, verb, str(self.path), *more],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_CALL_LIMIT_S,
                check=False,
                start_new_session=True,  # Ctrl-C in the controller's terminal is not for it
            )
        except (OSError, subprocess.TimeoutExpired) as err:
            raise MachineError(f"cannot {verb} the node: {err}") from err
        if done.returncode not in (0, *accepted):
            words = done.stderr.strip() or f"exit code {done.returncode}"
            raise MachineError(f"cannot {verb} the node: {words}")


def has_processes(tag: str) -> bool:
    """Return whether a live process of this machine carries the mark. Raises `OSError`."""
    wanted = f"{_TAG}={tag}".encode()
    with os.scandir("/proc") as entries:
        return any(wanted in _environment(entry) for entry in entries)


def _environment(entry: os.DirEntry[str]) -> list[bytes]:
    if not entry.name.isdigit():
        return []
    try:
        return Path(entry.path, "environ").read_bytes().split(b"\0")
    except OSError:  # ended, or another user's
        return []


def write(path: Path, content: str) -> None:
    """Replace a file in one step. Raises `OSError`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(content)
    draft.replace(path)


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_alive(supervisor: Mapping[str, object]) -> bool:
    """Return whether the process of a pid.json lives.

    Its start time and the machine's boot tell it from another that got the same number.
    """
    try:
        if supervisor.get("boot_id") != _BOOT_ID.read_text().strip():
            return False
        stat = Path(f"/proc/{supervisor.get('pid')}/stat").read_text(errors="replace")
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    return fields[0] not in {"Z", "X"} and int(fields[19]) == supervisor.get("start_time")

"""Files of decisions in the state folder: gzip, one JSON object a line. See docs/traces.md.

A thread of its own makes the text and writes it, so that no tick waits for a disk.
"""

from __future__ import annotations

import datetime as dt
import gzip
import os
import queue
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Plan, Snapshot
from hybrid.core.policy.record import RecordHead, decision_of, news_hash

FOLDER = "decisions"
SUFFIX = ".jsonl.gz"

KEPT_BYTES = 2**28
"""Of all files together: the ledger may be on the same disk."""
PART_BYTES = 2**23
PART_S = 21_600.0
"""Of one file. What a crash or a bad sector can cost is the rest of one."""
FREE_BYTES = 2**29
"""Nothing is written where less is free: that is the ledger's."""

_QUIET_S = 300.0
"""A decision without news is kept once in so long: ages and money are seen by it."""
_WAITING = 8
"""Decisions that wait to be written; more are dropped, should the disk hang."""
_AFTER_TROUBLE_S = 60.0


@dataclass(frozen=True)
class _Noted:
    snapshot: Snapshot
    params: PolicyParams
    plan: Plan


class DecisionFiles:
    """See `hybrid.control.recorder.Recorder`.

    What cannot be written is lost, and said once: a full disk costs no tick.

    Args:
        path: The folder.
        version: Of this program.
        kept_s: How long files are kept.
        tell: Is told, once, why nothing is recorded any more.
        kept_bytes: Of all files together.
        part_bytes: Of one file.
        pause_s: The tick that made a decision is let end before it is looked at.
    """

    def __init__(
        self,
        path: Path,
        *,
        version: str,
        kept_s: float,
        tell: Callable[[str], None] = lambda _: None,
        kept_bytes: int = KEPT_BYTES,
        part_bytes: int = PART_BYTES,
        pause_s: float = 0.5,
    ) -> None:
        self._path = path
        self._version = version
        self._kept_s = kept_s
        self._tell = tell
        self._kept_bytes = kept_bytes
        self._part_bytes = part_bytes
        self._pause_s = pause_s
        self._queue: queue.Queue[_Noted | None] = queue.Queue(_WAITING)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._part: _Part | None = None
        self._news = ""
        self._written_at_s = 0.0
        self._rests_until_s = 0.0
        self._trouble = ""

    def note(self, snapshot: Snapshot, params: PolicyParams, plan: Plan) -> None:
        """See `Recorder.note`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="decisions", daemon=True)
            self._thread.start()
        with suppress(queue.Full):
            self._queue.put_nowait(_Noted(snapshot, params, plan))

    def close(self, *, limit_s: float = 5.0) -> None:
        """Write what waits, and end; a disk that hangs is not waited for."""
        if self._thread is None:
            return
        self._ending.set()
        with suppress(queue.Full):
            self._queue.put(None, timeout=limit_s)
            self._thread.join(limit_s)

    def _work(self) -> None:
        while (noted := self._queue.get()) is not None:
            self._ending.wait(self._pause_s)
            try:
                self._keep(noted)
            except Exception as error:  # noqa: BLE001  # a record is never worth a thread
                self._fail(noted, error)
        if self._part is not None:
            with suppress(OSError):
                self._part.close()

    def _keep(self, noted: _Noted) -> None:
        now_s = noted.snapshot.now_s
        news = news_hash(noted.snapshot, noted.plan)
        quiet_s = abs(now_s - self._written_at_s)
        if news == self._news and not noted.plan.actions and quiet_s < _QUIET_S:
            return
        if 0 <= self._rests_until_s - now_s <= _AFTER_TROUBLE_S:
            return
        decision = decision_of(noted.snapshot, noted.params, noted.plan)
        self._part_for(noted).write(decision.model_dump_json())
        self._news, self._written_at_s, self._trouble = news, now_s, ""

    def _part_for(self, noted: _Noted) -> _Part:
        now_s, part = noted.snapshot.now_s, self._part
        if part is not None and part.params == noted.params:
            is_young = 0 <= now_s - part.from_s < PART_S
            if is_young and part.size_bytes < self._part_bytes:
                return part
        if part is not None:
            self._part = None
            part.close()
        self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_room(now_s)
        self._part = _Part(self._path, RecordHead(hybrid=self._version, params=noted.params), now_s)
        return self._part

    def _make_room(self, now_s: float) -> None:
        left_bytes = self._kept_bytes - self._part_bytes
        for path in sorted(self._path.glob(f"*{SUFFIX}"), reverse=True):
            left_bytes -= path.stat().st_size
            if left_bytes < 0 or _from_s(path) < now_s - self._kept_s - PART_S:
                path.unlink(missing_ok=True)
        if shutil.disk_usage(self._path).free < FREE_BYTES:
            raise OSError(f"less than {FREE_BYTES >> 20} MiB are free on its disk")

    def _fail(self, noted: _Noted, error: Exception) -> None:
        part, self._part = self._part, None
        if part is not None:
            with suppress(OSError):
                part.close()
        self._rests_until_s = noted.snapshot.now_s + _AFTER_TROUBLE_S
        words = getattr(error, "strerror", None) or str(error)
        if words != self._trouble:
            self._trouble = words
            self._tell(f"{self._path}: {words}")


class _Part:
    """One file, open."""

    def __init__(self, folder: Path, head: RecordHead, now_s: float) -> None:
        self.params = head.params
        self.from_s = now_s
        stamp = dt.datetime.fromtimestamp(now_s, dt.UTC).strftime("%Y%m%dT%H%M%SZ")
        self._raw = os.fdopen(_fresh(folder, stamp), "wb")
        self._file = gzip.GzipFile("", "wb", fileobj=self._raw, mtime=0)
        try:
            self.write(head.model_dump_json())
        except OSError:
            with suppress(OSError):
                self.close()
            raise

    @property
    def size_bytes(self) -> int:
        return self._raw.tell()

    def write(self, line: str) -> None:
        self._file.write(line.encode() + b"\n")
        self._file.flush()  # whole lines are on the disk, whatever happens to us

    def close(self) -> None:
        try:
            self._file.close()
        finally:
            self._raw.close()


def _fresh(folder: Path, stamp: str) -> int:
    """Return a new file, readable by us only."""
    for number in range(1_000):
        name = f"{stamp}-{number:03d}{SUFFIX}"
        with suppress(FileExistsError):
            return os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    raise OSError(f"a thousand files were begun at {stamp}")


def _from_s(path: Path) -> float:
    """Return when a file was begun, by its name; what has another name is old."""
    try:
        stamp = path.name.partition("-")[0]
        return dt.datetime.strptime(stamp, "%Y%m%dT%H%M%S%z").timestamp()
    except ValueError:
        return 0.0

"""Uploaded working directories, kept until their jobs have started and ended.

Ray keeps a package for ten minutes unless a job uses it (measured on 2.60), and loses all of them
with its head, so the controller keeps its own copy and hands it over with each submission.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hybrid.core.errors import ClusterError, HybridError, JobError
from hybrid.core.ports import Clock

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")

UNCLAIMED_S = 3600.0
"""How long a package may wait for its job."""

_SKEW_S = 60.0  # between our clock and that of the file system


class PackageFolder:
    """See `hybrid.core.ports.Packages`: one file for each package. Thread-safe."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        # Between the look at a file's age and its end nobody may count on it anew.
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes) -> None:
        """See `Packages.put`."""
        path = self._file(name)
        if self._touch(path):
            return  # the name is made from the content
        draft = ""
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, draft = tempfile.mkstemp(prefix=".", dir=self._path)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # its name promises its content, also after a power cut
            Path(draft).replace(path)
        except OSError as error:
            if draft:
                with suppress(OSError):
                    Path(draft).unlink(missing_ok=True)
            raise HybridError(
                f"the working directory cannot be stored in {self._path}: {error.strerror}. "
                f"Make room there and submit again"
            ) from error

    def get(self, name: str) -> bytes:
        """See `Packages.get`."""
        try:
            return self._file(name).read_bytes()
        except FileNotFoundError as error:
            raise JobError(
                f"the working directory {name} is not stored here any more; submit again"
            ) from error
        except OSError as error:
            raise ClusterError(
                f"the working directory {name} cannot be read from {self._path} now: "
                f"{error.strerror}; the job waits"
            ) from error

    def keep_only(self, names: Collection[str]) -> None:
        """See `Packages.keep_only`. Drafts that a crash left behind go, too."""
        with suppress(OSError):  # what cannot be removed now is tried again
            for path in list(self._path.iterdir()):
                if path.name in names:
                    continue
                with self._lock:
                    age_s = self._clock.now_s() - path.stat().st_mtime
                    if not -_SKEW_S <= age_s < UNCLAIMED_S:
                        path.unlink(missing_ok=True)

    def _touch(self, path: Path) -> bool:
        """Make a package young again; return whether it is there."""
        now_s = self._clock.now_s()
        with self._lock:
            try:
                os.utime(path, (now_s, now_s))
            except OSError:
                return False
        return True

    def _file(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise JobError(f"{name!r} cannot be the name of a package; write letters and digits")
        return self._path / name

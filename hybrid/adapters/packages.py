"""Uploaded working directories, kept until their jobs have started and ended.

Ray keeps a package for ten minutes unless a job uses it (measured on 2.60), and loses all of them
with its head, so the controller keeps its own copy and hands it over with each submission.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hybrid.core.errors import HybridError, JobError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class PackageFolder:
    """See `hybrid.core.ports.Packages`: one file for each package."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, name: str, content: bytes) -> None:
        """See `Packages.put`."""
        path = self._file(name)
        if path.exists():
            return  # the name is made from the content
        draft = path.with_name(f".{name}.{os.getpid()}")
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(content)
            draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise HybridError(
                f"the working directory cannot be stored in {self._path}: {error.strerror}. "
                f"Make room there and submit again"
            ) from error

    def get(self, name: str) -> bytes:
        """See `Packages.get`."""
        try:
            return self._file(name).read_bytes()
        except OSError as error:
            raise JobError(
                f"the working directory {name} is not stored here any more; submit again"
            ) from error

    def keep_only(self, names: Collection[str]) -> None:
        """See `Packages.keep_only`."""
        for path in self._path.glob("*"):
            if path.name not in names:
                path.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise JobError(f"{name!r} cannot be the name of a package; write letters and digits")
        return self._path / name

"""The folder of all instances: written before anything runs, read back after any crash."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from providers.local.machine import Machine, Record

_DRAFT = ".draft-"


class Store:
    """Instances in `folder`/instances, one folder each, named by our instance id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._instances = folder / "instances"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other launches out, in this process and in others. Raises `OSError`."""
        self._instances.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def path(self, name: str) -> Path:
        """Return where an instance is or will be."""
        return self._instances / name

    def machines(self) -> list[Machine]:
        """Return all instances, those of other clusters included. Raises `OSError`."""
        try:
            with os.scandir(self._instances) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return []
        found = (self.find(name) for name in names if not name.startswith("."))
        return [machine for machine in found if machine is not None]

    def find(self, name: str) -> Machine | None:
        """Return the instance in the folder `name`; `None` when its record is not readable."""
        try:
            content = self.path(name).joinpath("record.json").read_bytes()
            return Machine(self.path(name), Record.model_validate_json(content))
        except (OSError, ValidationError):
            return None

    def create(self, name: str, record: Record, files: Mapping[str, str]) -> Machine:
        """Write an instance's folder so that it exists whole or not at all. Raises `OSError`.

        Call it inside `locked`.
        """
        self._drop_drafts()
        draft = self.path(f"{_DRAFT}{name}")
        draft.mkdir(mode=0o700)
        all_files = {**files, "record.json": record.model_dump_json()}
        for file_name, content in all_files.items():
            file = draft / file_name
            file.touch(mode=0o600)
            file.write_text(content)
        draft.rename(self.path(name))
        return Machine(self.path(name), record)

    def forget(self, machine: Machine) -> None:
        """Remove a gone instance's folder; what cannot be removed stays for the next time."""
        shutil.rmtree(machine.path, ignore_errors=True)

    def _drop_drafts(self) -> None:
        for entry in self._instances.glob(f"{_DRAFT}*"):
            shutil.rmtree(entry, ignore_errors=True)


def to_json(content: Mapping[str, object]) -> str:
    """Return a file's text."""
    return json.dumps(content, indent=1)

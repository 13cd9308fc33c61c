"""A node's folder for tests, with a fake `ray start`; ended and checked after each test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from hybrid.node import processes, scratch
from hybrid.node.environment import TAG
from hybrid.node.folder import Folder, Phase
from hybrid.node.processes import Process
from hybrid.node.stopping import leftovers, stop

T = TypeVar("T")

PROGRAM = Path(processes.__file__).with_name("__main__.py")
FAKE_RAY = Path(__file__).with_name("fake_ray.py")
PORTS = (22_000, 22_699)  # what nodes may choose; tests that name a port use 22_700 and up


def wait_until(look: Callable[[], T], what: str, limit_s: float = 20.0) -> T:
    """Return the first true answer of `look`."""
    end_s = time.monotonic() + limit_s
    while not (answer := look()):
        if time.monotonic() > end_s:
            raise AssertionError(f"waited {limit_s} s for {what}")
        time.sleep(0.02)
    return answer


class Box:
    """One node in a folder of its own."""

    def __init__(self, path: Path, *, role: str = "instance") -> None:
        self.path = path
        self.folder = Folder(path)
        self.ray_dir = Path(f"/tmp/hybrid-test-{os.getpid()}/{uuid.uuid4().hex[:8]}")
        self.temp_dir = self.ray_dir / "n"
        self.orders: dict[str, object] = {
            "id": "i-1",
            "cluster_id": uuid.uuid4().hex[:8],
            "role": role,
            "command": [sys.executable, str(FAKE_RAY), "start", f"--temp-dir={self.temp_dir}"],
            "env": {"FAKE_RAY": "ok"},
            "temp_dir": str(self.temp_dir),
            "ports": list(PORTS),
        }
        path.mkdir()
        self.write()

    @property
    def tag(self) -> str:
        return f"{self.orders['cluster_id']}/{self.orders['id']}"

    def write(self, **changes: object) -> None:
        self.orders |= changes
        (self.path / "node.json").write_text(json.dumps(self.orders))

    def behave(self, mode: str) -> None:
        self.write(env={"FAKE_RAY": mode})

    def call(
        self, verb: str, *more: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", str(PROGRAM), verb, str(self.path), *more],
            env={**os.environ, TAG: self.tag, **(env or {})},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def start(self) -> None:
        done = self.call("start")
        assert done.returncode == 0, done.stderr

    def wait_for(self, phase: Phase) -> None:
        def is_there() -> bool:
            status = self.folder.status()
            return status is not None and status.phase is phase

        wait_until(is_there, f"phase {phase}; now {self.folder.status()}")

    def start_and_wait(self, phase: Phase = Phase.RUNNING) -> None:
        self.start()
        self.wait_for(phase)

    @property
    def problem(self) -> str:
        status = self.folder.status()
        return status.problem if status else ""

    def supervisor(self) -> Process:
        found = self.folder.supervisor()
        assert found is not None
        return found

    def guardian(self) -> Process:
        found = processes.find(self.supervisor().parent_pid)
        assert found is not None
        return found

    def raylet(self) -> Process:
        return next(p for p in self.everything() if p.name == "raylet")

    def everything(self) -> list[Process]:
        """Return all processes of the node, those that hide included."""
        return leftovers(self.path)

    def given(self) -> dict[str, dict[str, str]]:
        """Return what the fake `ray start` got."""
        content: dict[str, dict[str, str]] = json.loads((self.temp_dir / "fake.json").read_text())
        return content


def is_gone(found: list[Process]) -> bool:
    return not any(processes.is_alive(process) for process in found)


@contextmanager
def box(path: Path, *, role: str = "instance") -> Iterator[Box]:
    """Yield a node's folder and make sure that nothing of it is left afterwards."""
    made = Box(path, role=role)
    try:
        yield made
    finally:
        made.path.mkdir(exist_ok=True)
        made.write()
        assert stop(made.path) == ()
        scratch.remove(made.temp_dir)
        made.ray_dir.parent.rmdir() if made.ray_dir.parent.exists() else None

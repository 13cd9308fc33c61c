"""The provider in a root module of its own, with a home for clusters and a stand-in controller."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.client import discover
from tests.terraform.rig import Rig

STAND_IN = f"{sys.executable} -m tests.cli.stand_in"


class Lab:
    """A root module, and the clusters that it starts."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.home = folder / "home"
        root = folder / "ops"
        root.mkdir()
        self.rig = Rig(root, {"HYBRID_HOME": str(self.home), **env})
        for name in ("HYBRID_ADDRESS", "HYBRID_TOKEN", "HYBRID_CLUSTER", "HYBRID_CONFIG"):
            self.rig.env.pop(name, None)
        self.rig.provide("hybrid", "hybrid.terraform.provider.main")

    def hybrid(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of hybrid beside Terraform."""
        return subprocess.run(
            [sys.executable, "-m", "hybrid.cli.main", *words],
            env=self.rig.env,
            cwd=self.rig.folder,
            capture_output=True,
            text=True,
        )

    def record(self, cluster: str) -> discover.Record | None:
        """Return the controller of a cluster, when it lives."""
        found = discover.read_record(self.home / cluster)
        return found if found is not None and found.is_alive else None

    def token(self, cluster: str) -> str:
        """Return the API token of a cluster."""
        return (self.home / cluster / "api_token").read_text().strip()

    def processes(self) -> list[int]:
        """Return every process that was started for a cluster of this home."""
        mark = f"HYBRID_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                is_ours = entry.name.isdigit() and mark in (entry / "environ").read_bytes()
            except OSError:
                continue
            if is_ours and discover.is_alive(int(entry.name)):
                found.append(int(entry.name))
        return found

    def close(self) -> None:
        """End what a failed test left."""
        for folder in self.home.glob("*"):
            record = discover.read_record(folder)
            if record is not None and record.is_alive:
                self.hybrid("--cluster", str(folder), "down", "--yes")
        for pid in self.processes():
            if pid != os.getpid():
                os.kill(pid, 9)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, HYBRID_CONTROLLER_COMMAND=STAND_IN)
    yield made
    made.close()

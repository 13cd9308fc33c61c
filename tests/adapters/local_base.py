"""A head and hosts on this machine whose Ray is a fake."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybrid.adapters.local_fleet import LocalFleet
from hybrid.adapters.local_head import LocalHead
from hybrid.core.bootstrap import HeadPlan, NodePlan
from hybrid.node import processes
from hybrid.node.environment import TAG
from hybrid.node.folder import Folder, Phase
from tests.node.box import FAKE_RAY, PORTS, wait_until


class LocalBase:
    """Makes heads and fleets of one cluster, as often as a controller is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.ray_dir = Path(f"/tmp/hybrid-test-{os.getpid()}/{uuid.uuid4().hex[:8]}")
        self.token_file = folder / "ray_token"
        self.token_file.write_text("canary-token")

    def head(self, **changes: Any) -> LocalHead:
        plan = {
            "python": str(FAKE_RAY),
            "temp_dir": f"{self.ray_dir}/head",
            "resources": {"CPU": 1},
        }
        return LocalHead(
            self.folder / "nodes" / "head",
            HeadPlan.model_validate(plan | changes),
            cluster_id=self.cluster_id,
            ray_token_file=self.token_file,
            ports=PORTS,
        )

    def fleet(self, names: Sequence[str] = ("a", "b"), **changes: Any) -> LocalFleet:
        plan = {
            "python": str(FAKE_RAY),
            "resources": {"CPU": 4, "GPU": 4},
            "head_address": "127.0.0.1:22720",
        }
        plans = {
            name: NodePlan.model_validate(plan | changes | {"temp_dir": f"{self.ray_dir}/{name}"})
            for name in names
        }
        return LocalFleet(
            self.folder / "nodes",
            plans,
            cluster_id=self.cluster_id,
            ray_token_file=self.token_file,
            ports=PORTS,
        )

    def settle(self, name: str) -> list[int]:
        """Wait until a node runs with all its processes; return those of the cluster."""
        folder = Folder(self.folder / "nodes" / name)

        def is_running() -> bool:
            status = folder.status()
            return status is not None and status.phase is Phase.RUNNING

        wait_until(is_running, f"{name} to run")
        # The fake raylet's worker and what that started carry their final names last.
        wait_until(self._is_quiet, "the processes to settle")
        return self.pids()

    def _is_quiet(self) -> bool:
        before = self.pids()
        time.sleep(0.15)
        return self.pids() == before

    def pids(self) -> list[int]:
        """Return all processes of this cluster."""
        prefix = f"{TAG}={self.cluster_id}/".encode()
        return [
            pid
            for pid in processes.find_all()
            if any(word.startswith(prefix) for word in processes.environment(pid))
        ]


@contextmanager
def local_base(folder: Path) -> Iterator[LocalBase]:
    """Yield it; afterwards end everything and check that nothing is left."""
    base = LocalBase(folder)
    try:
        yield base
    finally:
        base.fleet(()).leave_removed()
        base.head().stop()
        wait_until(lambda: not base.pids(), "all processes to end")
        assert not base.ray_dir.exists()
        shutil.rmtree(base.ray_dir.parent, ignore_errors=True)

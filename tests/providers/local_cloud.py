"""A local cloud whose instances run a fake `ray start`."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybrid.adapters.clock import SystemClock
from hybrid.core.errors import TransientError
from hybrid.core.models import LaunchSpec, Offer
from hybrid.core.ports import ProviderContext
from hybrid.node import processes
from hybrid.node.environment import TAG
from providers.local import LocalProvider
from providers.local.params import Params
from tests.node.box import FAKE_RAY, PORTS, wait_until
from tests.node.controller import FakeController
from tests.providers.contract import end, live

POOL = {"infra": "local", "accelerators": "GPU:4", "cpus": 4, "usd_per_hour": 2.4}


class LosesAnswers(LocalProvider):
    """Does all its work, but no answer arrives."""

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        super().launch(offer, spec, token=token, join_token=join_token)
        raise TransientError("the answer was lost", provider=self.name)


class LocalCloud:
    """See `tests.providers.contract.Cloud`."""

    def __init__(self, folder: Path, controller_url: str) -> None:
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.controller_url = controller_url
        self.folder = folder
        self.ray_dir = Path(f"/tmp/hybrid-test-{os.getpid()}/{uuid.uuid4().hex[:8]}")
        self.pool: dict[str, Any] = dict(POOL)

    def provider(self, cluster_id: str = "") -> LocalProvider:
        return self._make(LocalProvider, cluster_id)

    def lose_next_answer(self) -> LocalProvider:
        return self._make(LosesAnswers, "")

    def sell_out(self) -> None:
        self.pool["fail"] = {"sold_out": True}

    def tags(self, provider_id: str) -> dict[str, str]:
        name = provider_id.removeprefix("local-")
        record = json.loads((self.instance(name) / "record.json").read_bytes())
        tags: dict[str, str] = record["spec"]["tags"]
        return tags

    def instance(self, name: str) -> Path:
        return self.folder / "instances" / name

    def pids(self) -> list[int]:
        """Return the processes of all instances of our cluster."""
        prefix = f"{TAG}={self.cluster_id}/".encode()
        return [
            pid
            for pid in processes.find_all()
            if any(word.startswith(prefix) for word in processes.environment(pid))
        ]

    def _make(self, kind: type[LocalProvider], cluster_id: str) -> LocalProvider:
        context = ProviderContext(
            cluster_id=cluster_id or self.cluster_id,
            cluster_name="test",
            state_dir=str(self.folder),
            ray_dir=str(self.ray_dir),
            clock=SystemClock(),
        )
        raw: Mapping[str, object] = {"pools": [self.pool], "ports": PORTS}
        return kind("local", Params.model_validate(raw), context, ray_python=str(FAKE_RAY))


@contextmanager
def local_cloud(folder: Path) -> Iterator[LocalCloud]:
    """Yield a cloud; afterwards end all its instances and check that nothing is left."""
    with FakeController() as controller:
        cloud = LocalCloud(folder, controller.url)
        try:
            yield cloud
        finally:
            for cluster_id in (cloud.cluster_id, "other-cluster"):
                provider = cloud.provider(cluster_id)
                end(provider, *live(provider))
            wait_until(lambda: not cloud.pids(), "all processes to end")
            assert not cloud.ray_dir.exists()
            shutil.rmtree(cloud.ray_dir.parent, ignore_errors=True)


def wait_for_running(cloud: LocalCloud, provider_id: str) -> dict[str, Any]:
    """Wait until its fake Ray runs and return what that was given."""
    path = cloud.instance(provider_id.removeprefix("local-"))

    def phase() -> bool:
        status = path / "status.json"
        return status.exists() and json.loads(status.read_bytes())["phase"] == "running"

    wait_until(phase, "the node to run")
    temp_dir = json.loads((path / "node.json").read_bytes())["temp_dir"]
    given: dict[str, Any] = json.loads(Path(temp_dir, "fake.json").read_bytes())
    return given

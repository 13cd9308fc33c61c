"""The same head and nodes as `hybrid up` starts, started as a person would: with `ray start`."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hybrid.adapters.ray import RayCluster
from hybrid.core.errors import ClusterError
from hybrid.core.models import NodeStatus
from hybrid.node.environment import TAG, node_environment
from hybrid.node.ports import PortChooser, fill, places
from hybrid.node.processes import is_alive, send, with_setting
from scripts.bench_parts.figures import BenchError

_START_LIMIT_S = 180.0
_END_LIMIT_S = 20.0
# Apart from those that the node program chooses from, see hybrid/node/orders.py.
_PORTS = (30_000, 32_000)
_POLL_S = 0.02


@dataclass(frozen=True)
class Recipe:
    """How one node is started.

    Attributes:
        command: With `{port:NAME}` places, and the addresses of another cluster.
    """

    name: str
    command: Sequence[str]
    env: dict[str, str | None]


def recipes(state_dir: Path) -> list[Recipe]:
    """Return what a cluster of ours was started with, the head first."""
    found = []
    for path in sorted(state_dir.glob("nodes/*/node.json"), key=lambda p: p.parent.name != "head"):
        orders = json.loads(path.read_text())
        found.append(Recipe(str(orders["id"]), list(orders["command"]), dict(orders["env"])))
    if not found or found[0].name != "head":
        raise BenchError(f"{state_dir} has no head")
    return found


@dataclass(frozen=True)
class Started:
    """A cluster that was started by hand.

    Attributes:
        returned_s: Until the last `ray start` returned.
        seen_s: Until Ray's head listed all nodes.
    """

    returned_s: float
    seen_s: float


@contextmanager
def by_hand(found: Sequence[Recipe]) -> Iterator[Started]:
    """Start the head, then all nodes at the same moment; end them afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="hb-", dir="/tmp"))  # short: sockets are below it
    tag = f"bench/{secrets.token_hex(6)}"
    chooser = PortChooser(folder / "ports.lock", _PORTS)
    token = secrets.token_hex(16)
    try:
        plans = [_Plan.of(recipe, chooser, folder / str(n)) for n, recipe in enumerate(found)]
        head, *nodes = plans
        address = f"127.0.0.1:{head.ports['gcs']}"
        started_s = time.monotonic()
        _finish([head.start(address, tag, token)], started_s)
        _finish([node.start(address, tag, token) for node in nodes], started_s)
        returned_s = time.monotonic() - started_s
        _wait_for_nodes(address, token, len(found), started_s)
        yield Started(returned_s, time.monotonic() - started_s)
    finally:
        end(tag)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class _Plan:
    recipe: Recipe
    ports: dict[str, int]
    folder: Path

    @classmethod
    def of(cls, recipe: Recipe, chooser: PortChooser, folder: Path) -> _Plan:
        names = places(recipe.command)
        return cls(recipe, chooser.choose(names, before={}, seed=str(folder)), folder)

    def start(self, address: str, tag: str, token: str) -> subprocess.Popen[bytes]:
        self.folder.mkdir()
        words = [
            _moved(word, address, self.folder) for word in fill(self.recipe.command, self.ports)
        ]
        env = node_environment(
            os.environ, self.recipe.env, tag=tag, ray_token=token, python=words[0]
        )
        with (self.folder / "start.log").open("wb") as log:
            return subprocess.Popen(
                words,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def _moved(word: str, address: str, folder: Path) -> str:
    if word.startswith("--temp-dir="):
        return f"--temp-dir={folder / 'r'}"
    return f"--address={address}" if word.startswith("--address=") else word


def _finish(starting: Sequence[subprocess.Popen[bytes]], started_s: float) -> None:
    for process in starting:
        left_s = _START_LIMIT_S - (time.monotonic() - started_s)
        try:
            code = process.wait(timeout=max(1.0, left_s))
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"`ray start` took longer than {_START_LIMIT_S:g} s") from error
        if code:
            raise BenchError(f"`ray start` ended with {code}")


def _wait_for_nodes(address: str, token: str, count: int, started_s: float) -> None:
    cluster = RayCluster(address, token)
    try:
        while time.monotonic() - started_s < _START_LIMIT_S:
            try:
                alive = [n for n in cluster.view().nodes if n.status is not NodeStatus.DEAD]
            except ClusterError:
                alive = []
            if len(alive) >= count:
                return
            time.sleep(_POLL_S)
    finally:
        cluster.close()
    raise BenchError(f"Ray did not list {count} nodes within {_START_LIMIT_S:g} s")


def end(tag: str) -> None:
    """End every process that carries the tag, each by its id.

    Raises:
        BenchError: Some would not end.
    """
    end_s = time.monotonic() + _END_LIMIT_S
    kind = signal.SIGTERM
    while left := with_setting(TAG, tag):
        for process in left:
            send(process, kind)
        pause_end_s = time.monotonic() + 3.0
        while time.monotonic() < pause_end_s and any(map(is_alive, left)):
            time.sleep(_POLL_S)
        kind = signal.SIGKILL
        if time.monotonic() > end_s:
            raise BenchError(f"processes that would not end: {[p.pid for p in left]}")

"""A real Ray cluster on this machine for tests, one per test session.

`LocalRay` starts a head and nodes with `ray start`, each with its own temporary folder and
fixed ports, because nodes that pick random ports at the same moment collide. It ends them by
process id, never by name. Two marks find them all: their session, which only job drivers leave,
and an environment variable, which Ray's agents lose when they change their title.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

TOKEN = "t0ken-of-the-test-cluster-0123456789abcdef"  # long enough for Ray, secret to nobody
FIRST_PORT = int(os.environ.get("HYBRID_TEST_RAY_PORT", "31000"))
_TAG = "HYBRID_TEST_RAY_TAG"
_STORE_BYTES = 80_000_000  # Ray's minimum is 78,643,200
_START_TIMEOUT_S = 90.0
_PORTS_PER_NODE = 10
_PORT_KINDS = (
    *("node-manager", "object-manager", "dashboard-agent-listen"),
    *("dashboard-agent-grpc", "runtime-env-agent", "metrics-export"),
)
_DRIVER_START = """
import json, time
import ray
ray.init(address="{address}", log_to_driver=False, logging_level="ERROR")
def say(value): print("SAYS", json.dumps(value), flush=True)
"""


@dataclass(frozen=True)
class RayNode:
    """One `ray start`: what is needed to find and to end it."""

    name: str
    tag: str
    temp_dir: Path
    process: subprocess.Popen[bytes]
    output: Path

    def pids(self) -> list[int]:
        """Return every live process of the node."""
        session = self.process.pid
        return [
            pid for pid in _live_pids() if _session_of(pid) == session or _tag_of(pid) == self.tag
        ]

    def story(self) -> str:
        """Return what the node printed and logged, for the message of a failure."""
        logs = sorted(self.temp_dir.glob("session_*/logs/*.*"))
        wanted = [log for log in logs if log.name.startswith(("raylet.", "gcs_server."))]
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in (self.output, *wanted)
        )

    def kill(self) -> None:
        """End the node at once, as a power cut would."""
        wait_until(lambda: not _kill_all(self.pids()), f"node {self.name} to be gone")
        self.process.wait()
        shutil.rmtree(self.temp_dir, ignore_errors=True)


@dataclass
class LocalRay:
    """A head and its nodes; `close()` ends whatever still runs.

    Attributes:
        first_port: Ports from here on are used, ten per node and for the head.
        env: Settings of Ray given to head and nodes.
    """

    first_port: int = FIRST_PORT
    token: str = TOKEN
    env: Mapping[str, str] = field(default_factory=dict)
    nodes: dict[str, RayNode] = field(default_factory=dict)
    _started_count: int = 0
    _folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hr-")))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.first_port}"

    @property
    def dashboard_url(self) -> str:
        return f"http://127.0.0.1:{self.first_port + 8}"

    def driver_env(self) -> dict[str, str]:
        """Return an environment for a driver, or any other client, of this cluster."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        return kept | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_max_resource_shapes_per_load_report": "1000",
            **self.env,
        }

    def launch_head(self, *, has_dashboard: bool = True) -> RayNode:
        """Start the head without waiting; `wait` waits. Jobs need the dashboard."""
        port = self.first_port
        arguments = [
            *("--head", f"--port={port}", "--no-monitor"),
            *("--num-cpus=1", "--num-gpus=0", "--labels=site=onprem,role=head"),
            *("--dashboard-host=127.0.0.1", f"--dashboard-port={port + 8}"),
            f"--include-dashboard={str(has_dashboard).lower()}",
            f"--ray-client-server-port={port + 7}",  # Ray starts this server always
        ]
        return self._launch("head", port, arguments, {})

    def launch_node(
        self, name: str, *, labels: str, cpus: int = 4, gpus: int = 4, instance_id: str = ""
    ) -> RayNode:
        """Start a node without waiting; it joins as soon as the head answers."""
        self._started_count += 1
        port = self.first_port + _PORTS_PER_NODE * self._started_count
        arguments = [
            *(f"--address={self.address}", f"--num-cpus={cpus}", f"--num-gpus={gpus}"),
            *(f"--labels={labels}", "--include-log-monitor=false"),
        ]
        env = {"RAY_CLOUD_INSTANCE_ID": instance_id} if instance_id else {}
        return self._launch(name, port, arguments, env)

    @contextlib.contextmanager
    def driver(self, code: str) -> Iterator[Driver]:
        """Run a script with `ray` connected and `say(value)`; kill it at the end.

        Ray then ends the script's tasks, actors and placement groups, which takes a moment.
        """
        script = f"{_DRIVER_START.format(address=self.address)}\n{textwrap.dedent(code)}"
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [sys.executable, "-u", "-c", script],
                env=self.driver_env(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                bufsize=0,  # so that `select` sees every line
                stderr=errors,
            )
            with process:
                try:
                    yield Driver(process, errors)
                finally:
                    process.kill()

    def wait(self) -> None:
        """Wait until each `ray start` has succeeded."""
        for node in self.nodes.values():
            code = node.process.wait(timeout=_START_TIMEOUT_S)
            if code:
                raise RuntimeError(f"ray start of {node.name} failed:\n{node.story()}")

    def kill(self, name: str) -> None:
        """End one node at once."""
        self.nodes.pop(name).kill()

    def close(self) -> None:
        """End all nodes, the head last, and remove their folders."""
        for name in sorted(self.nodes, key=lambda name: name == "head"):
            self.kill(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _launch(
        self, name: str, port: int, arguments: Sequence[str], env: Mapping[str, str]
    ) -> RayNode:
        tag = f"{name}-{uuid.uuid4().hex}"
        temp_dir = Path(tempfile.mkdtemp(prefix="hr-"))  # short: Ray makes unix sockets below it
        output = self._folder / f"{name}.log"
        command = [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", *arguments),
            *(f"--temp-dir={temp_dir}", f"--object-store-memory={_STORE_BYTES}"),
            *("--disable-usage-stats", "--min-worker-port=0", "--max-worker-port=0"),
            *(f"--{kind}-port={port + 1 + index}" for index, kind in enumerate(_PORT_KINDS)),
        ]
        with output.open("wb") as sink:
            process = subprocess.Popen(
                command,
                env=self.driver_env() | {_TAG: tag} | dict(env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        node = RayNode(name, tag, temp_dir, process, output)
        self.nodes[name] = node
        return node


@dataclass(frozen=True)
class Driver:
    """A running script."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def says(self, *, timeout_s: float = 60.0) -> Any:
        """Return the next value that the script said."""
        stdout = self.process.stdout
        assert stdout is not None
        while select.select([stdout], [], [], timeout_s)[0]:
            line = stdout.readline()
            if line.startswith(b"SAYS "):  # Ray writes there too
                return json.loads(line[5:])
            if not line:
                self.errors.seek(0)
                raise RuntimeError(f"the driver ended:\n{self.errors.read().decode()}")
        raise TimeoutError(f"the driver said nothing for {timeout_s:.0f} s")


@pytest.fixture(scope="session")
def local_ray() -> Iterator[LocalRay]:
    """A head, `onprem-1` with 4 GPUs and the rented `cloud-1` with 4 GPUs, for all tests.

    A test that needs a node of its own launches it, and kills it before it ends.
    """
    cluster = LocalRay()
    try:
        cluster.launch_head()
        cluster.launch_node("onprem-1", labels="site=onprem,hybrid-host=onprem-1")
        cluster.launch_node(
            "cloud-1", labels="site=cloud,provider=local,zone=z1", instance_id="i-cloud-1"
        )
        cluster.wait()
        yield cluster
    finally:
        cluster.close()


def _live_pids() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def _session_of(pid: int) -> int:
    """Return the session id; 0 for a process that is gone or only waits to be buried."""
    with contextlib.suppress(OSError):
        # The name, in brackets, may hold spaces.
        state, _, _, session, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if state not in "ZX":
            return int(session)
    return 0


def _tag_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        for item in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            key, _, value = item.partition(b"=")
            if key == _TAG.encode():
                return value.decode()
    return ""


def _kill_all(pids: list[int]) -> bool:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def wait_until(is_done: Callable[[], object], what: str, *, timeout_s: float = 20.0) -> None:
    """Return when `is_done()` is true, or raise `TimeoutError`."""
    deadline_s = time.monotonic() + timeout_s
    while not is_done():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(0.05)

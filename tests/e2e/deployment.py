"""A cluster for one test module: the real command line, controller, ledger and Ray.

It lives in a short folder of its own, from a configuration derived from configs/local.yaml, and
ends by process id whatever happened. `assert_nothing_left` is the promise of `hybrid down`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.client import Client
from hybrid.client import Job as ClientJob
from hybrid.core.errors import HybridError
from hybrid.core.models import Event, Instance, Job
from hybrid.core.views import NodeView, StatusView
from hybrid.node.environment import TAG
from hybrid.node.processes import environment, find, find_all, send

ROOT = Path(__file__).parents[2]
WORK = Path(__file__).parent / "work"
HYBRID = str(Path(sys.executable).parent / "hybrid")
NAME = "e2e"
LIMIT_S = 150.0
"""How long anything is waited for. Generous: other tests may use the same processors."""

HOST: Mapping[str, Any] = {
    "name": "home-1",
    "address": "local",
    "accelerators": "GPU:2",
    "cpus": 2,
}
POOL: Mapping[str, Any] = {
    "infra": "local",
    "accelerators": "GPU:2",
    "cpus": 2,
    "usd_per_hour": 2.40,
    "max_nodes": 2,
    "stock": 2,
    "boot_delay": "1s",
}
# configs/local.yaml, smaller and faster.
_FAST: Mapping[str, Any] = {
    "name": NAME,
    "head": {"client_port": "off"},  # plain YAML reads the word as a boolean
    "onprem": {"hosts": [HOST]},
    "clouds": {"any_of": [POOL]},
    "burst": {"queue": {"max_wait": "1s"}, "stabilisation": "1s"},
    "idle": {"after": "2s", "min_life": "3s", "boot_life_ratio": 0},
    "controller": {"tick": "500ms"},
}


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything that it said."""
        return f"{self.out}{self.err}"


class Deployment:
    """One cluster; `close()` ends everything of it.

    Attributes:
        folder: Holds all of its files.
        state_dir: Its state folder.
        gate: Where the tasks of `work/gate.py` say that they run, and find that they may end.
    """

    def __init__(self, *, state_dir: Path | None = None, **changes: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="he-", dir="/tmp"))
        self.config = self.folder / "hybrid.yaml"
        self.state_dir = state_dir or self.folder / "home" / NAME
        self.gate = self.folder / "gate"
        self.gate.mkdir()
        self.work = WORK
        self.client = Client(cluster=str(self.state_dir))
        self._tags: set[str] = set()
        self._ray_dirs: set[Path] = set()
        self._sockets: set[str] = set()
        self._commands: list[Command] = []
        if state_dir is not None:
            changes["state_dir"] = str(state_dir)
        self.configure(**changes)

    def configure(self, **changes: object) -> None:
        """Write the configuration: configs/local.yaml with the fast values and `changes`.

        A key whose value is `None` is left out.
        """
        base = yaml.safe_load((ROOT / "configs" / "local.yaml").read_text())
        content = _merged(_merged(base, _FAST), changes)
        self.config.write_text(yaml.safe_dump(content))

    # --- the command line -----------------------------------------------------------------

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "RAY_"))}
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
        return kept | {"PATH": path, "HYBRID_HOME": str(self.folder / "home"), "COLUMNS": "200"}

    def start(self, *words: str, program: Sequence[str] = (), **options: Any) -> Command:
        """Start `hybrid WORDS` without waiting for it."""
        process = subprocess.Popen(
            [*(program or [HYBRID]), *words],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        command = Command(process)
        self._commands.append(command)
        return command

    def hybrid(self, *words: str, code: int = 0) -> Done:
        """Run `hybrid WORDS` to its end, which must be `code`."""
        done = self.start(*words).wait()
        assert done.code == code, f"hybrid {' '.join(words)}: {done.text}\n{self.story()}"
        return done

    def up(self) -> Done:
        """Run `hybrid up`."""
        done = self.hybrid("up", str(self.config), "-y")
        self.learn()
        return done

    def down(self, *words: str) -> Done:
        """Run `hybrid down`."""
        self.learn()
        return self.hybrid("down", str(self.config), "-y", *words)

    # --- what is there --------------------------------------------------------------------

    def status(self) -> StatusView:
        """Return `hybrid status`."""
        return self.client.status()

    def node(self, name: str) -> NodeView | None:
        """Return a node of `hybrid status`, if it shows one of that name."""
        return next((node for node in self.status().nodes if node.name == name), None)

    def busy_gpus(self) -> dict[str, float]:
        """Return the GPUs at work by site, as `hybrid status` shows them."""
        used: dict[str, float] = {}
        for node in self.status().nodes:
            used[node.site] = used.get(node.site, 0) + (node.gpus_used or 0)
        return used

    @property
    def controller_pid(self) -> int:
        """The controller's process, as it says itself; 0 when none says so."""
        return int(_json(self.state_dir / "controller.json").get("pid") or 0)

    @property
    def lock_pid(self) -> int:
        """The process that took the state folder last, alive or not; 0 when none did."""
        with suppress(OSError, ValueError):
            return int((self.state_dir / "controller.lock").read_text())
        return 0

    def rows(self) -> list[Instance]:
        """Return all instances of the ledger, oldest first; with or without a controller."""
        with self._ledger() as ledger:
            return list(reversed(ledger.instances()))

    def live_rows(self) -> list[Instance]:
        """Return instances that have not ended."""
        return [row for row in self.rows() if not row.is_ended]

    def jobs(self) -> dict[str, Job]:
        """Return the jobs of the ledger by id."""
        with self._ledger() as ledger:
            return {job.job_id: job for job in ledger.jobs()}

    def events(self, *kinds: str) -> list[Event]:
        """Return the ledger's events of some kinds, oldest first."""
        with self._ledger() as ledger:
            return [e for e in ledger.events(limit=10_000) if not kinds or e.kind in kinds]

    def records(self) -> dict[str, dict[str, Any]]:
        """Return what the local cloud has on record, by folder: one for each machine it rented."""
        paths = sorted(self.state_dir.glob("providers/local/instances/*/record.json"))
        return {path.parent.name: _json(path) for path in paths}

    def pid_of(self, node: str) -> int:
        """Return the process that looks after a node: `head`, a host, or an instance."""
        return int(_json(self._node_folder(node) / "pid.json")["pid"])

    def raylet_pid_of(self, node: str) -> int:
        """Return Ray's own process of a node, once the node wrote it down.

        Ray places work on a node before `ray start` has ended there, so a task may run already.
        """
        path = self._node_folder(node) / "status.json"
        self.wait_until(lambda: _json(path).get("raylet_pid"), f"the raylet of {node}")
        return int(_json(path)["raylet_pid"])

    def pids_of(self, node: str) -> list[int]:
        """Return every process of a node."""
        orders = _json(self._node_folder(node) / "node.json")
        return _tagged(f"{orders['cluster_id']}/{orders['id']}") if orders else []

    def _node_folder(self, node: str) -> Path:
        host = self.state_dir / "nodes" / node
        return host if host.is_dir() else self.state_dir / "providers/local/instances" / node

    @contextmanager
    def _ledger(self) -> Iterator[Any]:
        ledger = open_ledger(sqlite_url(self.state_dir / "ledger.db"))
        try:
            yield ledger
        finally:
            ledger.close()

    # --- work -----------------------------------------------------------------------------

    def submit(
        self, *places: str, count: int = 1, gpus: float = 2, gang: str = "", **options: Any
    ) -> ClientJob:
        """Submit tasks that hold their GPUs until `open_gate`; `count` for each place.

        In the place `gang` two run at one moment on two nodes, or none does.
        """
        self.close_gate()
        where = " ".join([f"--where {place}" for place in places] + [f"--gang {gang}"] * bool(gang))
        command = f"python gate.py {self.gate} --count {count} --gpus {gpus:g} {where}"
        return self.client.submit(command, working_dir=WORK, **options)

    def started(self, site: str = "") -> list[dict[str, Any]]:
        """Return what the tasks that started since the last `submit` said about themselves."""
        found = [_json(path) for path in sorted(self.gate.glob("started-*.json"))]
        return [facts for facts in found if site in ("", facts["site"])]

    def open_gate(self) -> None:
        """Let every task end."""
        (self.gate / "open").touch()

    def close_gate(self) -> None:
        """Make tasks wait again, and forget which have started."""
        for path in self.gate.iterdir():
            path.unlink()

    # --- waiting --------------------------------------------------------------------------

    def wait_until(self, is_done: Callable[[], object], what: str) -> None:
        """Return when `is_done()` is true; fail with the cluster's story when it never is.

        A controller that is away counts as not yet.
        """
        deadline_s = time.monotonic() + LIMIT_S
        problem = ""
        while time.monotonic() < deadline_s:
            try:
                if is_done():
                    return
            except HybridError as error:
                problem = str(error)
            time.sleep(0.1)
        raise AssertionError(f"waited {LIMIT_S:.0f} s for {what}; {problem}\n{self.story()}")

    def wait_until_ready(self) -> None:
        """Wait for a controller that says it is ready."""
        self.wait_until(lambda: self.status().controller.state == "ready", "a ready controller")

    def wait_until_home(self) -> None:
        """Wait until nothing is rented any more."""
        self.wait_until(lambda: not self.live_rows(), "all instances to be returned")

    def settle(self) -> None:
        """Bring a running cluster to rest: its controller up, no job, nothing rented."""
        if find(self.controller_pid) is None:
            self.up()
        live = [job.job_id for job in self.jobs().values() if not job.state.is_ended]
        for job_id in live:
            self.client.job(job_id).cancel()
        self.wait_until(
            lambda: all(job.state.is_ended for job in self.jobs().values()), "all jobs to end"
        )
        self.wait_until_home()
        self.wait_until_ready()

    def story(self) -> str:
        """Return the ends of all logs, for the message of a failure."""
        logs = [self.state_dir / "controller.log", *self.state_dir.glob("nodes/*/node.log")]
        logs += self.state_dir.glob("providers/local/instances/*/node.log")
        parts = [
            f"--- {path.relative_to(self.state_dir)}\n{path.read_text(errors='replace')[-4000:]}"
            for path in logs
            if path.exists()
        ]
        with suppress(HybridError):
            told = [f"{j.job_id} {j.state} {j.message}" for j in self.jobs().values()]
            parts.append("\n".join(["--- jobs", *told]))
        with suppress(HybridError):
            parts.append(f"--- status\n{self.status().model_dump_json(indent=1)[:8000]}")
        return "\n".join(parts)

    # --- killing --------------------------------------------------------------------------

    def kill_controller(self) -> None:
        """Kill the controller with -9, as a crash would."""
        pid = self.controller_pid
        assert kill([pid]) == [pid]
        self.wait_until(lambda: find(pid) is None, "the controller to be gone")

    def stop_controller(self) -> None:
        """End the controller with SIGTERM; the cluster goes on."""
        pid = self.controller_pid
        os.kill(pid, signal.SIGTERM)
        self.wait_until(lambda: find(pid) is None, "the controller to end")

    # --- the end --------------------------------------------------------------------------

    def learn(self) -> None:
        """Remember by what this cluster's processes, folders and sockets can be known later."""
        for path in (
            *self.state_dir.glob("nodes/*/node.json"),
            *self.state_dir.glob("providers/local/instances/*/node.json"),
        ):
            orders = _json(path)
            if orders:
                self._tags.add(str(orders["cluster_id"]))
                self._ray_dirs.add(Path(str(orders["temp_dir"])).parent)
        for pid in self.processes():
            self._sockets |= _listening_of(pid)

    @property
    def ray_dirs(self) -> list[Path]:
        """Folders of Ray's own files."""
        self.learn()
        return sorted(self._ray_dirs)

    def processes(self) -> dict[int, str]:
        """Return every live process of this cluster, by whatever it can be known."""
        home = f"HYBRID_HOME={self.folder / 'home'}".encode()
        tags = tuple(f"{TAG}={tag}/".encode() for tag in self._tags)
        places = [f"{place}/".encode() for place in (self.folder, *self._ray_dirs)]
        found = {}
        for pid, process in find_all().items():
            if pid == os.getpid():
                continue
            settings = environment(pid)
            words = _words(pid)
            is_ours = home in settings or any(s.startswith(tags) for s in settings if tags)
            if is_ours or any(place in words for place in places):
                found[pid] = f"{process.name}: {words.decode(errors='replace')[:200]}"
        return found

    def assert_nothing_left(self) -> None:
        """Assert that no process, socket, lock, folder or promise of this cluster is left."""
        self.learn()
        assert self.processes() == {}
        assert not self._sockets & _listening()
        assert [path for path in self._ray_dirs if path.exists()] == []
        assert not (self.state_dir / "controller.json").exists()
        lock = self.state_dir / "controller.lock"
        if lock.exists():
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises when somebody has it
        if (self.state_dir / "ledger.db").exists():
            assert self.live_rows() == []
            assert [j.job_id for j in self.jobs().values() if not j.state.is_ended] == []

    def close(self) -> None:
        """End every process by its id and remove every folder."""
        self.client.close()
        deadline_s = time.monotonic() + LIMIT_S
        self.learn()
        while self.processes() and time.monotonic() < deadline_s:
            kill(self.processes())
            self.learn()
        for command in self._commands:
            command.kill()
        for folder in (*self._ray_dirs, self.folder):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Command:
    """A command that runs."""

    process: subprocess.Popen[str]

    def wait(self) -> Done:
        """Return what it did; it is killed when it does not end."""
        try:
            out, err = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"{self.process.args!r} did not end: {out}{err}") from None
        return Done(self.process.returncode, out, err)

    def kill(self) -> None:
        """End it, if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


def command_lines() -> list[str]:
    """Return the command line of every process of this machine."""
    return [_words(pid).decode(errors="replace") for pid in find_all()]


def kill(pids: Collection[int]) -> list[int]:
    """Kill processes with -9; return those that were there."""
    found = [process for pid in pids if (process := find(pid)) is not None]
    for process in found:
        send(process, signal.SIGKILL)
    return [process.pid for process in found]


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(base.get(key), Mapping):
            merged[key] = _merged(base[key], value)
        else:
            merged[key] = _plain(value)
    return merged


def _plain(value: Any) -> Any:
    """Return mappings and tuples as YAML writes them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _tagged(tag: str) -> list[int]:
    wanted = f"{TAG}={tag}".encode()
    return [pid for pid in find_all() if wanted in environment(pid)]


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def _listening() -> set[str]:
    """Return the inodes of all sockets that listen on this machine's TCP ports."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    inodes.add(fields[9])
    return inodes


def _listening_of(pid: int) -> set[str]:
    held = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                held.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
    return held & _listening()

"""A real cluster of this machine, with a home of its own, for as long as it is measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hybrid import Client
from scripts.bench_parts.figures import BenchError
from scripts.bench_parts.machine import ROOT

CONFIG = ROOT / "configs" / "local.yaml"
NAME = "local"
HYBRID = str(Path(sys.executable).parent / "hybrid")
_LIMIT_S = 300.0


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which only clusters below `home` are seen."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "RAY_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "HYBRID_HOME": str(home), "PATH": path}


def run(words: Sequence[str], env: Mapping[str, str], *, limit_s: float = _LIMIT_S) -> str:
    """Run a command and return what it printed.

    Raises:
        BenchError: It failed, or took too long.
    """
    try:
        done = subprocess.run(
            list(words),
            env=dict(env),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=limit_s,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{' '.join(words)}: {error}") from error
    if done.returncode:
        last = " / ".join(done.stderr.strip().splitlines()[-5:])
        raise BenchError(f"{' '.join(words)} ended with {done.returncode}: {last}")
    return done.stdout


@dataclass(frozen=True)
class LocalCluster:
    """The default cluster, up.

    Attributes:
        up_s: How long `hybrid up` took.
        ready_s: When it was up, by the monotonic clock.
    """

    home: Path
    up_s: float
    ready_s: float

    @property
    def env(self) -> dict[str, str]:
        """Environment of commands about it."""
        return environment(self.home)

    @property
    def state_dir(self) -> Path:
        """Its state folder."""
        return self.home / NAME

    @property
    def pid(self) -> int:
        """Its controller."""
        return int(json.loads((self.state_dir / "controller.json").read_text())["pid"])

    def client(self) -> Client:
        """Return a client of it."""
        return Client(cluster=str(self.state_dir))


@contextmanager
def local_cluster() -> Iterator[LocalCluster]:
    """Bring a fresh cluster up, and down again whatever happens."""
    home = Path(tempfile.mkdtemp(prefix="hybrid-bench-"))
    env = environment(home)
    down = [HYBRID, "--cluster", str(home / NAME), "down", "--yes"]
    try:
        started_s = time.monotonic()
        run([HYBRID, "up", str(CONFIG), "--yes"], env)
    except BenchError:
        with suppress(BenchError):  # why it did not come up says more
            run(down, env)
        raise
    ready_s = time.monotonic()
    try:
        yield LocalCluster(home, ready_s - started_s, ready_s)
    finally:
        run(down, env)
        shutil.rmtree(home, ignore_errors=True)

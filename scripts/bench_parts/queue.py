"""How soon a job runs that need not wait, and how many can be submitted.

Beside Ray's own `JobSubmissionClient`, in turns on the same cluster: what is different is ours.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from hybrid import Client
from scripts.bench_parts import waiting
from scripts.bench_parts.cluster import LocalCluster
from scripts.bench_parts.figures import BenchError, Figure, shortened
from scripts.bench_parts.machine import ROOT

_RATIO = 1.3
_PER_MINUTE = 1_000
_BEHIND_RATIO = 0.02
_TURNS = 7
_CLIENTS = 20
_LIMIT_S = 120.0
_LOOK_S = 0.01


def measure(cluster: LocalCluster, *, turns: int = _TURNS) -> list[Figure]:
    """Return the way of a job to its first line, beside Ray's; and a minute of submissions."""
    with (
        cluster.client() as client,
        closing(_RaysOwn(cluster, client.status().cluster.dashboard_url)) as rays,
    ):
        return [
            *waiting.measure(),
            _ratio(client, rays, "gpu", "with one GPU", turns, entrypoint_num_gpus=1),
            _ratio(client, rays, "plain", "without GPUs", turns),
            *_submissions(cluster, client, _PER_MINUTE),
        ]


# --- to its first line --------------------------------------------------------------------


class _RaysOwn:
    """Ray's own client, in a process that has the token."""

    def __init__(self, cluster: LocalCluster, url: str) -> None:
        """Start it, and wait until it is ready."""
        env = {
            **cluster.env,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(cluster.state_dir / "ray_token"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.bench_parts.raysubmit", url],
            env=env,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def submit(self, **request: object) -> None:
        """Submit a job, and return when Ray has it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        self._answer()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise BenchError("Ray's own client ended; its message is above")


def _ratio(
    client: Client, rays: _RaysOwn, name: str, words: str, turns: int, **resources: int
) -> Figure:
    gpus = resources.get("entrypoint_num_gpus", 0)
    ours, theirs = [], []
    for turn in range(turns + 1):
        pair = (
            _until_it_runs(lambda command: client.submit(command, gpus=gpus)),
            _until_it_runs(lambda command: rays.submit(entrypoint=command, **resources)),
        )
        if turn:  # the first warms both
            ours.append(pair[0])
            theirs.append(pair[1])
            print(f"  {name}: {pair[0]:.2f} s, Ray's {pair[1]:.2f} s", file=sys.stderr)
    return Figure(
        name=f"submit_to_running_{name}_ratio",
        what=(
            f"from the submission of a job {words} and free capacity to its first line, over the "
            "same with Ray's JobSubmissionClient; medians of turns"
        ),
        value=statistics.median(ours) / statistics.median(theirs),
        unit="times",
        target=_RATIO,
        details={"ours_s": _seconds(ours), "rays_s": _seconds(theirs)},
    )


def _until_it_runs(submit: Callable[[str], object]) -> float:
    """Return how long it took from the call to the first thing that the job did, seconds."""
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        mark = Path(folder) / "runs"
        started_s = time.monotonic()
        submit(f": > {mark}")
        while not mark.exists():
            if time.monotonic() > started_s + _LIMIT_S:
                raise BenchError(f"a job did not run within {_LIMIT_S:g} s")
            time.sleep(_LOOK_S)
        took_s = time.monotonic() - started_s
    time.sleep(1.0)  # its end is not the next one's trouble
    return took_s


def _seconds(times: Sequence[float]) -> dict[str, object]:
    return {
        "best": shortened(min(times)),
        "median": shortened(statistics.median(times)),
        "worst": shortened(max(times)),
        "runs": len(times),
    }


# --- a minute of submissions --------------------------------------------------------------


@dataclass
class _Taken:
    """Which jobs were acknowledged, and how long each answer took."""

    ids: list[str] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    all_s: float = 0.0

    @property
    def per_minute(self) -> float:
        """Return how many were taken in a minute."""
        return 60.0 * len(self.ids) / self.all_s


def _submissions(cluster: LocalCluster, client: Client, count: int) -> list[Figure]:
    """Submit at the wanted rate, and then as fast as it goes; none may be lost."""
    client.pause("out")
    for _ in range(8):  # home is full, so the others wait, as they do when it matters
        client.submit("sleep 3600", gpus=1, priority=100)
    before_s = _cpu_s(cluster.pid)
    paced = _submit(cluster, count, every_s=60.0 / _PER_MINUTE)
    cpu_ratio = (_cpu_s(cluster.pid) - before_s) / paced.all_s
    fast = _submit(cluster, count, every_s=0.0)
    kept = {row.job_id for row in client.jobs(limit=10_000, live=True).jobs}
    if lost := {*paced.ids, *fast.ids} - kept:
        raise BenchError(f"{len(lost)} jobs were acknowledged and lost")
    return [
        Figure(
            name="submissions_behind_ratio",
            what=(
                f"how far {count:,} submissions by {_CLIENTS} clients fell behind {_PER_MINUTE:,} "
                "a minute; each is answered when the ledger on disk has it"
            ),
            value=max(0.0, 1.0 - paced.per_minute / _PER_MINUTE),
            unit="of the rate",
            target=_BEHIND_RATIO,
            details={
                "per_minute": shortened(paced.per_minute),
                "answer_s": _seconds(paced.took_s),
                "controller_cpu_ratio": shortened(cpu_ratio),
            },
        ),
        Figure(
            name="submissions_per_minute",
            what=f"the same as fast as {_CLIENTS} clients of one process can",
            value=fast.per_minute,
            unit="per minute",
            details={"answer_s": _seconds(fast.took_s)},
        ),
    ]


def _submit(cluster: LocalCluster, count: int, *, every_s: float) -> _Taken:
    taken, numbers, lock = _Taken(), iter(range(count)), threading.Lock()
    began_s = time.monotonic()

    def work() -> None:
        with cluster.client() as client:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                # Each has its moment, so one slow answer does not lower the rate of the others.
                time.sleep(max(0.0, began_s + number * every_s - time.monotonic()))
                asked_s = time.monotonic()
                job = client.submit("sleep 3600", gpus=1, priority=number % 100)
                taken.took_s.append(time.monotonic() - asked_s)
                taken.ids.append(job.id)

    with ThreadPoolExecutor(_CLIENTS) as pool:
        for done in [pool.submit(work) for _ in range(_CLIENTS)]:
            done.result()
    taken.all_s = time.monotonic() - began_s
    return taken


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and its threads, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

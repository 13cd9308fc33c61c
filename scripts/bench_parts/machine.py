"""The machine, and processes of it, as /proc shows them."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import hybrid

ROOT = Path(__file__).resolve().parents[2]
_KIB = 1024
_MB = 1e6


def facts() -> dict[str, object]:
    """Return when, where and on what something is measured."""
    return {
        "program": "scripts/bench",
        "version": hybrid.__version__,
        "commit": _git("rev-parse", "--short", "HEAD"),
        "is_tree_changed": bool(_git("status", "--porcelain", "--", "hybrid", "providers")),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "cpus": len(os.sched_getaffinity(0)),
            "cpu_model": _cpu_model(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "kernel": platform.release(),
            "load_before": load(),
            "contention_before": contention(),
        },
        "python": platform.python_version(),
        "ray": version("ray"),
    }


def load() -> list[float]:
    """Return how many processes wanted a processor over the last 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def contention(*, runs: int = 25) -> float:
    """Return wall time over processor time of some work: 1 on a quiet machine.

    With 2, wall times are about twice what they would be alone.
    """
    cpu_s = wall_s = 0.0
    for _ in range(runs):
        cpu, wall = time.process_time(), time.perf_counter()
        sum(range(1_000_000))
        wall_s += time.perf_counter() - wall
        cpu_s += time.process_time() - cpu
    return round(wall_s / cpu_s, 2)


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _cpu_model() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1] if match else platform.machine()


@dataclass(frozen=True)
class Footprint:
    """What one process takes.

    Attributes:
        rss_mb: Memory it has in the machine, with what it shares with others.
        pss_mb: The same, with shared pages divided among those who share them.
        private_mb: Memory of its own: what would be free if it ended.
        cpu_s: Processor time since it started.
    """

    rss_mb: float
    pss_mb: float
    private_mb: float
    fds: int
    threads: int
    cpu_s: float

    @classmethod
    def of(cls, pid: int) -> Footprint:
        """Read it."""
        proc = Path(f"/proc/{pid}")
        sizes = rollup((proc / "smaps_rollup").read_text())
        return cls(
            rss_mb=sizes["Rss"],
            pss_mb=sizes["Pss"],
            private_mb=sizes["Private_Clean"] + sizes["Private_Dirty"],
            fds=len(list((proc / "fd").iterdir())),
            threads=len(list((proc / "task").iterdir())),
            cpu_s=_cpu_s((proc / "stat").read_text()),
        )

    def as_json(self) -> dict[str, float]:
        """Return the form that is printed."""
        return {
            "rss_mb": round(self.rss_mb, 1),
            "pss_mb": round(self.pss_mb, 1),
            "private_mb": round(self.private_mb, 1),
            "fds": self.fds,
            "threads": self.threads,
        }


def _cpu_s(stat: str) -> float:
    # The name before the bracket may hold spaces; fields 14 and 15 are user and system time.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rollup(text: str) -> Mapping[str, float]:
    """Return the sizes of a smaps_rollup file, in megabytes (10^6 bytes)."""
    found = re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(kib) * _KIB / _MB for name, kib in found}

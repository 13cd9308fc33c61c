"""A part of the benchmark as a program of its own.

So it has the memory of its own work only, and its log goes where a controller's log goes: to a
file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from hybrid.control import log
from scripts.bench_parts.cluster import environment
from scripts.bench_parts.figures import BenchError, Figure
from scripts.bench_parts.machine import ROOT

_LIMIT_S = 600.0


def measure(module: str) -> list[Figure]:
    """Run `python -m scripts.bench_parts.MODULE`, which calls `tell`; return its figures."""
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        log_path = Path(folder) / "log"
        with log_path.open("wb") as errors:
            done = subprocess.run(
                [sys.executable, "-m", f"scripts.bench_parts.{module}"],
                env=environment(Path(folder)),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=_LIMIT_S,
            )
        if done.returncode:
            last = log_path.read_text(errors="replace").splitlines()[-3:]
            raise BenchError(f"{module} ended with {done.returncode}: {' / '.join(last)}")
    return [Figure(**fields) for fields in json.loads(done.stdout)]


def tell(figures: Callable[[], Iterable[Figure]]) -> int:
    """Print figures for `measure`; return the exit code."""
    log.configure(is_pretty=False)
    print(json.dumps([asdict(figure) for figure in figures()]))
    return 0

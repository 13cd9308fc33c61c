"""How long the command line takes, against the import of what it is made with."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from scripts.bench_parts.cluster import HYBRID, LocalCluster, run
from scripts.bench_parts.figures import Figure, shortened, timed

_TARGET = 1.3
HEAVY = ("ray", "boto3", "google", "baidubce", "fastapi", "sqlalchemy")
_BASE = (sys.executable, "-c", "import typer, rich, httpx")
_NOTHING = (sys.executable, "-c", "pass")
_LOADED = """
import sys
from hybrid.cli.main import main
try:
    main({words!r})
finally:
    print(*sorted(set({heavy!r}) & set(sys.modules)), file=sys.stderr)
"""


def measure(cluster: LocalCluster, *, rounds: int = 21) -> list[Figure]:
    """Return the figures of the command line against a live cluster."""
    wall_s = interleaved(
        {
            "base": _BASE,
            "nothing": _NOTHING,
            "help": (HYBRID, "--help"),
            "status": (HYBRID, "status", "--json"),
        },
        cluster.env,
        rounds=rounds,
    )
    json.loads(run([HYBRID, "status", "--json"], cluster.env))  # it really answers
    return [
        *(_ratio(name, words, wall_s) for name, words in _SHOWN.items()),
        _modules(cluster),
        _requests(cluster),
    ]


_SHOWN = {"help": "hybrid --help", "status": "hybrid status --json"}


def interleaved(
    commands: Mapping[str, Sequence[str]], env: Mapping[str, str], *, rounds: int
) -> dict[str, list[float]]:
    """Return wall times in seconds; one of each command a round, so that noise hits all."""
    wall_s: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, words in commands.items():
            started_s = time.perf_counter()
            subprocess.run(list(words), env=dict(env), stdout=subprocess.DEVNULL, check=True)
            if number:  # the first round warms the file cache
                wall_s[name].append(time.perf_counter() - started_s)
    return wall_s


def _ratio(name: str, words: str, wall_s: Mapping[str, list[float]]) -> Figure:
    medians = {key: statistics.median(times) for key, times in wall_s.items()}
    return Figure(
        name=f"cli_{name}_ratio",
        what=f"`{words}` against `python -c 'import typer, rich, httpx'`, medians of wall time",
        value=medians[name] / medians["base"],
        unit="ratio",
        target=_TARGET,
        details={
            "median_ms": shortened(medians[name] * 1e3),
            "best_ms": shortened(min(wall_s[name]) * 1e3),
            "base_median_ms": shortened(medians["base"] * 1e3),
            "base_best_ms": shortened(min(wall_s["base"]) * 1e3),
            "ratio_of_best": shortened(min(wall_s[name]) / min(wall_s["base"])),
            "empty_python_median_ms": shortened(medians["nothing"] * 1e3),
            "runs": len(wall_s[name]),
        },
    )


def _modules(cluster: LocalCluster) -> Figure:
    loaded: dict[str, list[str]] = {}
    for words in (["--help"], ["status", "--json"]):
        code = _LOADED.format(words=words, heavy=HEAVY)
        done = subprocess.run(
            [sys.executable, "-c", code], env=cluster.env, capture_output=True, text=True
        )
        loaded["hybrid " + " ".join(words)] = done.stderr.split()
    return Figure(
        name="cli_heavy_modules",
        what=f"modules among {', '.join(HEAVY)} that the two commands load",
        value=float(sum(map(len, loaded.values()))),
        unit="modules",
        target=0.0,
        details=loaded,
    )


def _requests(cluster: LocalCluster) -> Figure:
    with cluster.client() as client:
        times = timed(client.status, runs=50)
    return Figure(
        name="api_status_ms",
        what="one status of the API on a kept connection, its model read; median",
        value=times.median_ms,
        unit="ms",
        details=times.details(),
    )

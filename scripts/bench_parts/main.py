"""Runs the parts of the benchmark one after the other, and prints the document."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.core.errors import HybridError
from scripts.bench_parts import (
    burst,
    clouds,
    commands,
    growth,
    machine,
    mixed,
    policy,
    queue,
    quickstart,
    rest,
    start,
    table,
    tick,
)
from scripts.bench_parts.cluster import LocalCluster, local_cluster
from scripts.bench_parts.figures import BenchError, Figure, document

ALONE: dict[str, Callable[[], list[Figure]]] = {
    "tick": tick.measure,
    "clouds": clouds.measure,
    "mixed": mixed.measure,
    "policy": policy.measure,
    "up": start.measure,
}
"""Parts that need no cluster, or make their own."""

ON_CLUSTER: dict[str, Callable[[LocalCluster], list[Figure]]] = {
    "memory": rest.measure_memory,
    "cli": commands.measure,
    "soak": rest.measure_soak,
    "burst": burst.measure,
    "queue": queue.measure,
}
"""Parts that share one cluster, in this order: the quiet ones first, and last what leaves jobs."""

PARTS = (*ALONE, *ON_CLUSTER, "quickstart")


@dataclass
class Run:
    """What was found so far."""

    figures: list[Figure] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, measure: Callable[[], list[Figure]]) -> None:
        """Run one part; a part that fails does not stop the others."""
        print(f"{name} ...", file=sys.stderr, flush=True)
        started_s = time.monotonic()
        try:
            found = measure()
        except (BenchError, HybridError, OSError) as error:
            self.failures[name] = f"{type(error).__name__}: {error}"
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)
            return
        self.figures += found
        for figure in found:
            print(f"  {_line(figure)}", file=sys.stderr)
        print(f"{name}: {time.monotonic() - started_s:.0f} s", file=sys.stderr, flush=True)


def main(words: Sequence[str]) -> int:
    """Measure, print one JSON document, and return the exit code."""
    options = _options(words)
    if options.table:
        saved = json.loads(options.table.read_text())
        if options.growth:
            growth.draw(saved, options.growth)
        print(table.markdown(saved))
        return 0
    chosen = _chosen(options)
    facts = machine.facts()
    done = Run()
    started_s = time.monotonic()
    for name, measure in ALONE.items():
        if name in chosen:
            done.add(name, measure)
    if shared := [name for name in ON_CLUSTER if name in chosen]:
        _on_cluster(done, shared)
    if "quickstart" in chosen:
        done.add("quickstart", quickstart.measure)
    facts |= {
        "took_s": round(time.monotonic() - started_s),
        "load_after": machine.load(),
        "contention_after": machine.contention(),
    }
    print(json.dumps(document(done.figures, done.failures, facts), indent=2))
    return 1 if done.failures else 0


def _on_cluster(done: Run, names: Sequence[str]) -> None:
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(local_cluster())
        except BenchError as error:
            done.failures |= dict.fromkeys(names, f"no cluster: {error}")
            return
        for name in names:
            done.add(name, lambda part=ON_CLUSTER[name]: part(cluster))  # type: ignore[misc]
        done.add("down", lambda: _close(stack))


def _close(stack: ExitStack) -> list[Figure]:
    stack.close()
    return []


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure speed and size; print one JSON document.",
        epilog=f"Parts: {', '.join(PARTS)}.",
    )
    parser.add_argument("--only", default="", metavar="PARTS", help="some parts, with commas")
    parser.add_argument("--quickstart", action="store_true", help="the quickstart too: minutes")
    parser.add_argument("--json", action="store_true", help="print JSON, as always")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="measure nothing: print a saved document's table"
    )
    parser.add_argument(
        "--growth",
        type=Path,
        metavar="PICTURE",
        help="with --table: also draw how decisions grow, as .svg or .png",
    )
    options = parser.parse_args(words)
    if options.growth and not options.table:
        parser.error("--growth needs --table FILE, a document with the part policy")
    if unknown := _named(options) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


def _named(options: argparse.Namespace) -> set[str]:
    return set(filter(None, options.only.split(",")))


def _chosen(options: argparse.Namespace) -> set[str]:
    names = _named(options) or set(PARTS[:-1])
    return names | ({"quickstart"} if options.quickstart else set())


def _line(figure: Figure) -> str:
    value = "none" if figure.value is None else f"{figure.value:.4g} {figure.unit}"
    if figure.is_met is None:
        return f"{figure.name}: {value}"
    word = "met" if figure.is_met else "MISSED"
    return f"{figure.name}: {value} (target {figure.target:g}: {word})"

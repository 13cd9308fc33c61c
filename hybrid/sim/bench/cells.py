"""One run of the benchmark, and many of them in processes of their own."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from hybrid.sim.bench.cases import Case
from hybrid.sim.named import Named
from hybrid.sim.results import SimResult
from hybrid.sim.run import simulate

_LOOK_S = 0.2
# How many jobs end between two reports of a process: each costs a lock.
_REPORTED = 200

OnDone = Callable[[float, int, str], None]
"""Told how many runs are done, parts of runs included, how many there are, and which began."""


@dataclass(frozen=True)
class Cell:
    """One policy on one case with one seed."""

    case: Case
    policy: Named
    seed: int

    @property
    def label(self) -> str:
        """What progress calls it."""
        return f"{self.case.name} {self.policy.make(late_share=self.case.late_share).name}"

    def run(
        self, folder: Path | None, on_progress: Callable[[float], None] | None = None
    ) -> SimResult:
        """Return what it comes to, without its course.

        Args:
            folder: `HYBRID_TRACES`.
            on_progress: Told which part of the jobs has ended.
        """
        trace = self.case.load(folder)
        count = max(1, len(trace.jobs))
        tell = on_progress

        def done(ended: int) -> None:
            if tell is not None and ended % _REPORTED == 0:
                tell(ended / count)

        policy = self.policy.make(late_share=self.case.late_share)
        result = simulate(trace, self.case.params(self.seed), policy, on_progress=done)
        return result.model_copy(update={"series": ()})


def run_all(
    cells: Sequence[Cell], folder: Path | None, *, process_count: int, on_done: OnDone
) -> list[SimResult]:
    """Return the results of cells in their order.

    Args:
        cells: What to run.
        folder: `HYBRID_TRACES`.
        process_count: How many run at once. 1 runs them here, one after the other.
        on_done: Told how far it is, a few times a second.
    """
    if process_count <= 1 or len(cells) <= 1:
        return _run_here(cells, folder, on_done)
    context = multiprocessing.get_context("spawn")
    parts: Any = context.Array("d", len(cells))
    with ProcessPoolExecutor(
        min(process_count, len(cells)), context, initializer=_keep, initargs=(parts,)
    ) as pool:
        futures = [pool.submit(_run_there, i, cell, folder) for i, cell in enumerate(cells)]
        try:
            _watch(futures, cells, parts, on_done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            raise
        return [future.result() for future in futures]


def _run_here(cells: Sequence[Cell], folder: Path | None, on_done: OnDone) -> list[SimResult]:
    results = []
    for number, cell in enumerate(cells):
        label = cell.label

        def tell(part: float, number: int = number, label: str = label) -> None:
            on_done(number + part, len(cells), label)

        tell(0.0)
        results.append(cell.run(folder, tell))
    on_done(len(cells), len(cells), "")
    return results


def _watch(
    futures: Sequence[Future[SimResult]], cells: Sequence[Cell], parts: Any, on_done: OnDone
) -> None:
    left: set[Future[SimResult]] = set(futures)
    while left:
        ended, left = wait(left, timeout=_LOOK_S)
        for future in ended:
            future.result()
        begun = [cell.label for cell, part in zip(cells, parts, strict=True) if 0 < part < 1]
        on_done(sum(parts), len(cells), ", ".join(begun))


_parts: list[Synchronized[float]] = []


def _keep(parts: Any) -> None:
    # Ctrl-C is for the command: it ends its processes itself, without a traceback of each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _parts[:] = [parts]


def _run_there(number: int, cell: Cell, folder: Path | None) -> SimResult:
    parts: Any = _parts[0]
    # Never more than one process writes one place.
    parts[number] = 1e-9
    result = cell.run(folder, lambda part: parts.__setitem__(number, max(1e-9, part)))
    parts[number] = 1.0
    return result


def now_s() -> float:
    """Return a clock for wall times."""
    return time.perf_counter()

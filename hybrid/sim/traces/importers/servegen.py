"""Alibaba's ServeGen: rates of inference services in windows of ten minutes.

As published it is a folder with one file for each client (`chunk-N-trace.csv`, without a header:
start, requests per second, variation, family of the distribution, two parameters). All clients of
a folder make one service. The shorter table has their sum already.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from hybrid.sim.traces.csvfile import stem
from hybrid.sim.traces.rates import RateTrace, RateWindow, ordered, window_of
from hybrid.sim.traces.reading import (
    BadLineError,
    OnPart,
    Table,
    Tally,
    TraceError,
    lines_of,
    number,
)

_WINDOW_S = 600.0
_SHORT = ("window_start_s", "total_rps", "rate_weighted_cv")
_CLIENTS = "chunk-*-trace.csv"


def read_servegen(
    path: Path, *, name: str = "", is_strict: bool = False, on_part: OnPart | None = None
) -> RateTrace:
    """Return the rates of all clients together.

    The variation is the mean of the clients', weighted by their rates.

    Args:
        path: A folder with the files of clients, or a table of sums.
        name: What people call it.
        is_strict: Refuse what would else be counted.
        on_part: Is told how much has been read.

    Raises:
        TraceError: It cannot be used.
    """
    tally = Tally(str(path), is_strict=is_strict)
    if path.is_dir():
        windows = list(enumerate(_sum(path, tally, on_part), start=1))
        return ordered(name or f"servegen {path.name}", str(path), windows, tally)
    table = Table(path, on_part=on_part)
    table.form(_SHORT)
    return ordered(name or stem(path), str(path), list(table.each(_window, tally)), tally)


def _window(_line: int, cells: Mapping[str, str]) -> RateWindow:
    start, rate, variation = (number(cells[column], column) for column in _SHORT)
    return window_of(start, _WINDOW_S, rate, variation)


def _sum(folder: Path, tally: Tally, on_part: OnPart | None) -> Iterator[RateWindow]:
    files = sorted(folder.glob(_CLIENTS))
    if not files:
        raise TraceError(f"{folder} holds no {_CLIENTS}; name a folder of data/ of ServeGen")
    rates: dict[float, list[float]] = {}
    weighted: dict[float, list[float]] = {}
    for count, file in enumerate(files, start=1):
        for start_s, rate, variation in _client(file, tally):
            rates.setdefault(start_s, []).append(rate)
            weighted.setdefault(start_s, []).append(rate * variation)
        if on_part is not None:
            on_part(count / len(files))
    for start_s in sorted(rates):
        rate = math.fsum(rates[start_s])
        variation = math.fsum(weighted[start_s]) / rate if rate else 0.0
        yield RateWindow(start_s, _WINDOW_S, rate, variation)


def _client(file: Path, tally: Tally) -> Iterator[tuple[float, float, float]]:
    with lines_of(file) as lines:
        for line, cells in enumerate(csv.reader(lines), start=1):
            if not cells:
                continue
            try:
                yield _numbers(cells)
            except BadLineError as bad:
                tally.skip(line, f"{file.name}: {bad.reason}", bad.found)


def _numbers(cells: list[str]) -> tuple[float, float, float]:
    if len(cells) < 3:
        raise BadLineError("fewer than three numbers", str(len(cells)))
    start, rate, variation = (number(cell, "a number") for cell in cells[:3])
    window_of(start, _WINDOW_S, rate, variation)  # refuses what is out of bounds
    return start, rate, variation

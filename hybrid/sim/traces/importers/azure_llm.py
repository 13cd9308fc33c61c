"""Azure's LLM inference traces: one line for each request; made into rates by window here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from hybrid.sim.traces.rates import RateTrace, RateWindow, ordered
from hybrid.sim.traces.reading import BadLineError, OnPart, Table, Tally, TraceError, number
from hybrid.sim.traces.times import instant_s

_ORIGINAL = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_SHORT = ("arrival_s", "input_tokens", "output_tokens")
_MOST_WINDOWS = 1_000_000
"""Nearly two years of minutes; far apart are times in mixed units."""


def read_azure_llm(
    path: Path,
    *,
    name: str = "",
    is_strict: bool = False,
    window_s: float = 60.0,
    on_part: OnPart | None = None,
) -> RateTrace:
    """Return requests per second by window, and how much the times between requests vary.

    The last window ends with the trace, so it may be shorter. A window without a request is
    there, with rate 0.

    Args:
        path: The file, as published or as a shorter table.
        name: What people call it.
        is_strict: Refuse what would else be counted.
        window_s: Length of a window, more than 0.
        on_part: Is told how much has been read.

    Raises:
        TraceError: The file cannot be used.
    """
    if not 0.0 < window_s < math.inf:
        raise ValueError(f"window_s is {window_s}, not above 0")
    table = Table(path, on_part=on_part)
    is_short = bool(table.form(_ORIGINAL, _SHORT))
    column = (_SHORT if is_short else _ORIGINAL)[0]
    tally = Tally(str(path), is_strict=is_strict)

    def arrival(_line: int, cells: Mapping[str, str]) -> float:
        cell = cells[column]
        at_s = number(cell, "the time of arrival") if is_short else instant_s(cell)
        if at_s < 0:
            raise BadLineError("the time of arrival is below 0", cell)
        return at_s

    arrivals: list[float] = []
    for line, at_s in table.each(arrival, tally):
        if arrivals and at_s < arrivals[-1]:
            tally.keep(line, "earlier than the line before; sorted", str(at_s))
        arrivals.append(at_s)
    if not arrivals:
        raise TraceError(f"{path} has no request that can be used")
    arrivals.sort()
    windows = list(enumerate(_windows(path, arrivals, window_s), start=1))
    return ordered(name or "azure-llm", str(path), windows, tally)


def _windows(path: Path, arrivals: list[float], window_s: float) -> list[RateWindow]:
    zero_s, last_s = arrivals[0], arrivals[-1] - arrivals[0]
    count = int(last_s // window_s) + 1
    if count > _MOST_WINDOWS:
        raise TraceError(
            f"{path} spans {last_s:.0f} s, too many windows of {window_s:g} s; take longer ones, "
            "unless its times are in mixed units"
        )
    by_window: list[list[float]] = [[] for _ in range(count)]
    for at_s in arrivals:
        by_window[int((at_s - zero_s) // window_s)].append(at_s)
    windows = []
    for place, times in enumerate(by_window):
        start_s = place * window_s
        length_s = min(window_s, last_s - start_s) or window_s
        windows.append(RateWindow(start_s, length_s, len(times) / length_s, _variation(times)))
    return windows


def _variation(times: list[float]) -> float:
    """Return the coefficient of variation of the times between requests; 0 of fewer than two."""
    gaps = [after - before for before, after in pairwise(times)]
    mean = math.fsum(gaps) / len(gaps) if gaps else 0.0
    if mean <= 0.0:
        return 0.0
    return math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean

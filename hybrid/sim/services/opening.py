"""Opens a trace of rates by what people say: a file of any format we read, or a public one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hybrid.sim.traces import sources
from hybrid.sim.traces.importers.azure_llm import read_azure_llm
from hybrid.sim.traces.importers.servegen import read_servegen
from hybrid.sim.traces.rates import COLUMNS, RateTrace, read_rates
from hybrid.sim.traces.reading import OnPart, Table, TraceError
from hybrid.sim.traces.trace import DAY_S

NAMED = ("servegen", "azure-llm")
"""Public traces that can be named instead of a file."""


def open_rates(what: str, folder: Path | None, *, on_part: OnPart | None = None) -> RateTrace:
    """Return a trace of rates.

    Args:
        what: A file in our format, of ServeGen's columns or with one line for each request as
            Azure's; a folder of ServeGen; or one of `NAMED`. A file wins over a name.
        folder: `HYBRID_TRACES`.
        on_part: Is told how much has been read.

    Raises:
        TraceError: There is none such, or it cannot be used.
    """
    path = Path(what)
    if not path.exists():
        if what not in NAMED:
            raise TraceError(f"there is no file {what}; name one, or {' or '.join(NAMED)}")
        path = sources.find(what, folder)
    if path.is_dir():
        return read_servegen(path, on_part=on_part)
    header = set(Table(path).header)
    if set(COLUMNS) <= header:
        return read_rates(path, on_part=on_part)
    if header & {"arrival_s", "TIMESTAMP"}:
        return read_azure_llm(path, on_part=on_part)
    return read_servegen(path, on_part=on_part)


def days_of(trace: RateTrace, first: float, last: float) -> RateTrace:
    """Return the windows that start in these days, counted from the first of them.

    Raises:
        TraceError: There are none.
    """
    start_s = first * DAY_S
    windows = tuple(
        replace(window, start_s=window.start_s - start_s)
        for window in trace.windows
        if start_s <= window.start_s < last * DAY_S
    )
    if not windows:
        days = trace.end_s / DAY_S
        raise TraceError(f"{trace.name} has nothing in days {first:g}-{last:g}; it has {days:.1f}")
    return replace(trace, name=f"{trace.name}, days {first:g}-{last:g}", windows=windows)

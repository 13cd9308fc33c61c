"""Our own format of job traces: CSV with a header, plain or gzip. See docs/traces.md."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hybrid.sim.traces.collecting import Collector, job_of
from hybrid.sim.traces.reading import (
    BadLineError,
    OnPart,
    Table,
    Tally,
    TraceError,
    number,
    whole,
)
from hybrid.sim.traces.trace import Trace, TraceJob

COLUMNS = (
    "job_id",
    "submit_s",
    "duration_s",
    "gpus",
    "class",
    "user",
    "checkpointable",
    "checkpoint_gb",
)
NEEDED = ("submit_s", "duration_s", "gpus")
_FLAGS = {
    **dict.fromkeys(("true", "yes", "1"), True),
    **dict.fromkeys(("false", "no", "0"), False),
}


def read_csv(
    path: Path,
    *,
    name: str = "",
    is_strict: bool = False,
    renamed: Mapping[str, str] | None = None,
    on_part: OnPart | None = None,
) -> Trace:
    """Return the trace in a file.

    Args:
        path: The file.
        name: What people call it; default: the name of the file.
        is_strict: Refuse what would else be counted.
        renamed: How a column of the file is called here, such as `{"num_gpus": "gpus"}`.
        on_part: Is told how much has been read.

    Raises:
        TraceError: The file cannot be used.
    """
    table = Table(path, renamed=renamed, on_part=on_part)
    table.form(NEEDED)
    tally = Tally(str(path), is_strict=is_strict)
    for extra in [column for column in table.header if column not in COLUMNS]:
        tally.keep(1, f"column {extra} is not used")
    collector = Collector(str(path), tally)
    for line, job in table.each(_job, tally):
        collector.add(line, job)
    return collector.trace(name or stem(path))


def write_csv(trace: Trace, path: Path) -> None:
    """Write a trace, gzip where the name ends in `.gz`; whole or not at all.

    Raises:
        TraceError: The file cannot be written.
    """
    write_table(path, COLUMNS, (_cells(job) for job in trace.jobs))


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV file, gzip where its name ends in `.gz`; whole or not at all.

    Raises:
        TraceError: The file cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as raw:
            packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(packed, encoding="utf-8", newline="") as text:
                writer = csv.writer(text, lineterminator="\n")
                writer.writerow(header)
                writer.writerows(rows)
        beside.replace(path)
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # there only if something failed, which has been said
            beside.unlink(missing_ok=True)


def plain(value: float) -> str:
    """Return a number as text that reads back to the same value; no `.0` at its end."""
    return str(int(value)) if value == int(value) else repr(value)


def stem(path: Path) -> str:
    """Return the name of a file without what says its format."""
    return path.name.removesuffix(".gz").removesuffix(".csv") or path.name


def _job(line: int, cells: Mapping[str, str]) -> TraceJob:
    def cell(column: str) -> str:
        return cells.get(column, "").strip()

    flag = cell("checkpointable").lower() or "true"
    if flag not in _FLAGS:
        raise BadLineError("checkpointable is neither true nor false", flag)
    return job_of(
        cell("job_id") or f"line-{line}",
        number(cell("submit_s"), "submit_s"),
        number(cell("duration_s"), "duration_s"),
        whole(cell("gpus"), "gpus"),
        class_name=cell("class") or "batch",
        user=cell("user"),
        is_checkpointable=_FLAGS[flag],
        checkpoint_gb=number(cell("checkpoint_gb") or "0", "checkpoint_gb"),
    )


def _cells(job: TraceJob) -> Sequence[str]:
    return (
        job.job_id,
        plain(job.submit_s),
        plain(job.duration_s),
        str(job.gpus),
        job.class_name,
        job.user,
        "true" if job.is_checkpointable else "false",
        plain(job.checkpoint_gb),
    )

"""Microsoft Philly, 2017: as the artifact of Sia has it, or as the shorter table made of that.

Every job is one line; a GPU is a GPU. The trace does not say which jobs could be checkpointed:
they are taken to be, and `--share` of the simulator says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hybrid.sim.traces.collecting import Collector, job_of
from hybrid.sim.traces.reading import OnPart, Table, Tally, number, whole
from hybrid.sim.traces.times import instant_s
from hybrid.sim.traces.trace import Trace, TraceJob

_ORIGINAL = ("timestamp", "duration", "num_gpus", "cluster")
_SHORT = ("submit_s", "duration_s", "num_gpus", "vc")


def read_philly(
    path: Path, *, name: str = "", is_strict: bool = False, on_part: OnPart | None = None
) -> Trace:
    """Return the jobs; the virtual cluster is the user, and day 0 that of the first job.

    Raises:
        TraceError: The file cannot be used.
    """
    table = Table(path, on_part=on_part)
    is_short = bool(table.form(_ORIGINAL, _SHORT))
    submitted, lasted, asked, cluster = _SHORT if is_short else _ORIGINAL

    def job(line: int, cells: Mapping[str, str]) -> TraceJob:
        at = cells[submitted]
        return job_of(
            f"philly-{line - 1:06}",
            number(at, "the time of submission") if is_short else instant_s(at),
            number(cells[lasted], "the duration"),
            whole(cells[asked], "the number of GPUs"),
            user=cells[cluster].strip(),
        )

    tally = Tally(str(path), is_strict=is_strict)
    collector = Collector(str(path), tally)
    for line, made in table.each(job, tally):
        collector.add(line, made)
    return collector.trace(name or "philly", is_from_first_day=True)

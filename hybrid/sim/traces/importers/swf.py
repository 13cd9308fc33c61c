"""The Standard Workload Format 2.2 of the Parallel Workloads Archive.

Eighteen numbers in a line, -1 where nothing is known, and comments that begin with `;`.
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hybrid.sim.traces.collecting import Collector, job_of
from hybrid.sim.traces.csvfile import stem
from hybrid.sim.traces.reading import BadLineError, OnPart, Tally, lines_of, number, whole
from hybrid.sim.traces.trace import Trace, TraceJob

_FIELD_COUNT = 18
_MISSING = -1
_PARTIAL = (2, 3, 4)
"""States of a part of a job; the whole job has a line of its own, with state 0, 1 or 5."""


def read_swf(
    path: Path,
    *,
    name: str = "",
    is_strict: bool = False,
    processors_per_gpu: float = 1.0,
    on_part: OnPart | None = None,
) -> Trace:
    """Return the jobs that ran.

    Args:
        path: The file.
        name: What people call it; default: what its header says, or the name of the file.
        is_strict: Refuse what would else be counted.
        processors_per_gpu: How many processors of the log stand for one GPU; a rest is one more.
        on_part: Is told how much has been read.

    Raises:
        TraceError: The file cannot be used.
    """
    if not 0.0 < processors_per_gpu < math.inf:
        raise ValueError(f"processors_per_gpu is {processors_per_gpu}, not above 0")
    tally = Tally(str(path), is_strict=is_strict)
    collector = Collector(str(path), tally)
    header: dict[str, str] = {}
    with lines_of(path, on_part) as lines:
        for line, text in enumerate(lines, start=1):
            if text.lstrip().startswith(";"):
                label, colon, value = text.strip(" ;\t\r\n").partition(":")
                if colon:
                    header.setdefault(label.strip(), value.strip())
            elif fields := text.split():
                try:
                    collector.add(line, _job(fields, processors_per_gpu))
                except BadLineError as bad:
                    tally.skip(line, bad.reason, bad.found)
    known = header.get("Computer", "")
    return collector.trace(name or known or stem(path).removesuffix(".swf"))


def _job(fields: Sequence[str], processors_per_gpu: float) -> TraceJob:
    if len(fields) != _FIELD_COUNT:
        raise BadLineError(f"not {_FIELD_COUNT} numbers", str(len(fields)))
    number_of, submit, run_s = (number(fields[place], "a field") for place in (0, 1, 3))
    allocated, asked = (number(fields[place], "the number of processors") for place in (4, 7))
    user, state = (whole(fields[place], "a field") for place in (11, 10))
    if state in _PARTIAL:
        raise BadLineError("a part of a job, which has a line of its own", str(state))
    if run_s == _MISSING:
        raise BadLineError("its run time is missing")
    processors = asked if allocated == _MISSING else allocated
    if processors == _MISSING:
        raise BadLineError("its number of processors is missing")
    return job_of(
        f"swf-{number_of:.0f}",
        submit,
        run_s,
        math.ceil(processors / processors_per_gpu),
        user="" if user == _MISSING else f"user-{user}",
    )

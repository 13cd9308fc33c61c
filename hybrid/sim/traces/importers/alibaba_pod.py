"""Alibaba's GPU cluster of 2023 (`openb`): its list of pods, as published or in a shorter table.

A pod that asks for a share of a GPU is counted with a whole one. Pods that still ran when the
trace was taken end there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hybrid.sim.traces.collecting import Collector, job_of
from hybrid.sim.traces.reading import BadLineError, OnPart, Table, Tally, number, whole
from hybrid.sim.traces.trace import Trace, TraceJob

_ORIGINAL = ("name", "num_gpu", "qos", "creation_time", "scheduled_time", "deletion_time")
_SHORT = ("num_gpu", "qos", "submit_s", "start_s", "end_s")
_WHOLE_GPU = 1_000


def read_alibaba_pod(
    path: Path, *, name: str = "", is_strict: bool = False, on_part: OnPart | None = None
) -> Trace:
    """Return the pods that asked for a GPU and got a place; the class of service is the user.

    Raises:
        TraceError: The file cannot be used.
    """
    table = Table(path, on_part=on_part)
    is_short = bool(table.form(_ORIGINAL, _SHORT))
    created, placed, ended = _SHORT[2:] if is_short else _ORIGINAL[3:]
    tally = Tally(str(path), is_strict=is_strict)

    def job(line: int, cells: Mapping[str, str]) -> TraceJob:
        if not cells[placed].strip():
            raise BadLineError("it never got a place")
        if not cells[ended].strip():
            raise BadLineError("its end is missing")
        made = job_of(
            cells.get("name", "").strip() or f"pod-{line - 1:05}",
            number(cells[created], "the time of creation"),
            number(cells[ended], "its end") - number(cells[placed], "the time of its placing"),
            whole(cells["num_gpu"], "the number of GPUs"),
            user=cells["qos"].strip(),
        )
        share = whole(cells.get("gpu_milli") or "1000", "gpu_milli")
        if 0 < share < _WHOLE_GPU:
            tally.keep(line, "a share of a GPU; counted as a whole one", str(share))
        return made

    collector = Collector(str(path), tally)
    for line, made in table.each(job, tally):
        collector.add(line, made)
    return collector.trace(name or "alibaba-pod")

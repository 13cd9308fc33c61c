"""Opens a trace by what people say: a file, the shipped sample, or a public one by its name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from hybrid.sim.traces import sources
from hybrid.sim.traces.csvfile import NEEDED, read_csv, write_csv
from hybrid.sim.traces.importers.alibaba_pod import read_alibaba_pod
from hybrid.sim.traces.importers.azure_llm import read_azure_llm
from hybrid.sim.traces.importers.philly import read_philly
from hybrid.sim.traces.importers.servegen import read_servegen
from hybrid.sim.traces.importers.spot import read_spot
from hybrid.sim.traces.importers.swf import read_swf
from hybrid.sim.traces.rates import COLUMNS as RATE_COLUMNS
from hybrid.sim.traces.rates import RateTrace, read_rates, write_rates
from hybrid.sim.traces.reading import OnPart, Table, TraceError
from hybrid.sim.traces.spots import COLUMNS as SPOT_COLUMNS
from hybrid.sim.traces.spots import SpotTrace, read_spots, write_spots
from hybrid.sim.traces.trace import Trace

AnyTrace: TypeAlias = Trace | RateTrace | SpotTrace

SAMPLE = "sample"
KINDS = ("philly", "alibaba-pod", "azure-llm", "servegen", "spot", "csv", "swf")
"""The formats that can be imported."""
JOB_KINDS = ("philly", "alibaba-pod")
"""Those whose public trace is one of jobs, and can be named instead of a file."""


def sample() -> Path:
    """Return the file of the synthetic trace that comes with the program."""
    return Path(str(files("hybrid.sim.traces").joinpath("sample.csv.gz")))


def open_jobs(what: str, folder: Path | None, *, on_part: OnPart | None = None) -> Trace:
    """Return a trace of jobs.

    Args:
        what: A file in our format, `sample`, or one of `JOB_KINDS`. A file wins over a name.
        folder: `HYBRID_TRACES`.
        on_part: Is told how much has been read.

    Raises:
        TraceError: There is none such, or it cannot be used.
    """
    path = Path(what)
    if not path.exists() and what in JOB_KINDS:
        return _jobs(what, import_trace(what, sources.find(what, folder), on_part=on_part))
    return _jobs(what, open_any(what, on_part=on_part))


def open_any(what: str, *, is_strict: bool = False, on_part: OnPart | None = None) -> AnyTrace:
    """Return the trace in a file of one of our three formats; its header says which.

    Raises:
        TraceError: There is none such, or it cannot be used.
    """
    path = Path(what)
    if not path.exists():
        if what == SAMPLE:
            return read_csv(sample(), name=SAMPLE, is_strict=is_strict, on_part=on_part)
        named = ", ".join((SAMPLE, *JOB_KINDS))
        raise TraceError(f"there is no file {what}; name one, or {named}")
    header = set(Table(path).header)
    if set(RATE_COLUMNS) <= header:
        return read_rates(path, is_strict=is_strict, on_part=on_part)
    if set(SPOT_COLUMNS) <= header:
        return read_spots(path, is_strict=is_strict, on_part=on_part)
    if not set(NEEDED) <= header:
        raise TraceError(
            f"{path}, line 1: not in our format, which needs the columns {', '.join(NEEDED)}; "
            f"it has {', '.join(sorted(header))[:200]}. Import it: hybrid trace import KIND {path}"
        )
    return read_csv(path, is_strict=is_strict, on_part=on_part)


def import_trace(
    kind: str,
    path: Path,
    *,
    name: str = "",
    is_strict: bool = False,
    renamed: Mapping[str, str] | None = None,
    processors_per_gpu: float = 1.0,
    window_s: float = 60.0,
    on_part: OnPart | None = None,
) -> AnyTrace:
    """Return what is in a file of another format.

    Args:
        kind: One of `KINDS`.
        path: The file or folder.
        name: What people call it; default: as the importer has it.
        is_strict: Refuse what would else be counted.
        renamed: For `csv`: how a column of the file is called here.
        processors_per_gpu: For `swf`: how many processors stand for one GPU.
        window_s: For `azure-llm`: length of a window.
        on_part: Is told how much has been read.

    Raises:
        TraceError: It cannot be used.
    """
    match kind:
        case "philly":
            return read_philly(path, name=name, is_strict=is_strict, on_part=on_part)
        case "alibaba-pod":
            return read_alibaba_pod(path, name=name, is_strict=is_strict, on_part=on_part)
        case "azure-llm":
            return read_azure_llm(
                path, name=name, is_strict=is_strict, window_s=window_s, on_part=on_part
            )
        case "servegen":
            return read_servegen(path, name=name, is_strict=is_strict, on_part=on_part)
        case "spot":
            return read_spot(path, name=name, on_part=on_part)
        case "csv":
            return read_csv(path, name=name, is_strict=is_strict, renamed=renamed, on_part=on_part)
        case "swf":
            return read_swf(
                path,
                name=name,
                is_strict=is_strict,
                processors_per_gpu=processors_per_gpu,
                on_part=on_part,
            )
        case _:
            raise TraceError(f"{kind} is no kind of trace; take one of {', '.join(KINDS)}")


def save(trace: AnyTrace, path: Path) -> None:
    """Write a trace in our format of its kind, gzip where the name ends in `.gz`.

    Raises:
        TraceError: The file cannot be written.
    """
    match trace:
        case Trace():
            write_csv(trace, path)
        case RateTrace():
            write_rates(trace, path)
        case SpotTrace():
            write_spots(trace, path)


def _jobs(what: str, trace: AnyTrace) -> Trace:
    if not isinstance(trace, Trace):
        kind = "rates of a service" if isinstance(trace, RateTrace) else "spot instances"
        raise TraceError(f"{what} is a trace of {kind}; one of jobs is needed")
    return trace

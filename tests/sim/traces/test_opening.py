"""Traces by name, the shipped sample, and what is said when a public one is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.cli.trace.importing import Kind
from hybrid.sim.traces import opening, sources
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.spots import SpotTrace, zone_of
from hybrid.sim.traces.summary import peak_gpus, summary
from hybrid.sim.traces.trace import Trace, TraceJob
from scripts import sample_trace

DOCS = Path(__file__).parents[3] / "docs" / "traces.md"


def test_the_sample_is_what_its_script_makes_and_small() -> None:
    assert opening.open_jobs("sample", None) == sample_trace.made()
    assert opening.sample().stat().st_size < 60_000


def test_the_sample_has_the_tail_that_makes_bursting_dear() -> None:
    jobs = summary(opening.open_any("sample")).jobs

    assert jobs is not None
    assert jobs.long_jobs_ratio < 0.05
    assert jobs.long_work_ratio > 0.6
    assert jobs.peak_gpus > 2.5 * jobs.mean_gpus


def test_a_public_trace_that_is_not_here_is_told_with_what_to_fetch(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="HYBRID_TRACES is not set") as unset:
        opening.open_jobs("philly", None)
    with pytest.raises(TraceError, match="not in"):
        opening.open_jobs("philly", tmp_path)

    source = sources.SOURCES[0]
    for part in (source.repository, source.commit, source.path, source.sha256):
        assert part in str(unset.value)


def test_a_public_trace_is_found_under_any_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    text = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,a\n"
    (tmp_path / "jobs" / "philly.csv").write_text(text, encoding="utf-8")

    assert len(opening.open_jobs("philly", tmp_path).jobs) == 1


def test_a_name_that_is_nothing_is_told_with_what_there_is() -> None:
    with pytest.raises(TraceError, match="no file nothing; name one, or sample, philly"):
        opening.open_jobs("nothing", None)
    with pytest.raises(TraceError, match="no public trace for swf"):
        sources.find("swf", None)
    with pytest.raises(TraceError, match="no kind of trace"):
        opening.import_trace("pbs", Path("x"))


def test_a_file_of_another_format_is_told_how_to_import(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("timestamp,duration\n", encoding="utf-8")

    with pytest.raises(TraceError, match="hybrid trace import KIND"):
        opening.open_any(str(path))


def test_our_files_are_told_apart_by_their_headers(tmp_path: Path) -> None:
    spot = SpotTrace("s", (zone_of("a", 10.0, [(1, 2)]),))
    opening.save(spot, tmp_path / "s.csv")

    assert opening.open_any(str(tmp_path / "s.csv")) == spot
    with pytest.raises(TraceError, match="one of jobs is needed"):
        opening.open_jobs(str(tmp_path / "s.csv"), None)


def test_the_command_line_knows_every_kind() -> None:
    assert tuple(kind.value for kind in Kind) == opening.KINDS


@pytest.mark.parametrize("source", sources.SOURCES, ids=lambda source: source.kind)
def test_the_page_lists_what_to_fetch(source: sources.Source) -> None:
    page = DOCS.read_text(encoding="utf-8")

    for part in (source.repository, source.commit, source.path, source.sha256, source.licence):
        assert part in page
    assert all(f"`{name}`" in page for name in source.files)


def test_a_job_that_ends_as_another_begins_does_not_add_to_the_peak() -> None:
    trace = Trace.of(
        "t", [TraceJob("a", 0, 10, 4), TraceJob("b", 10, 5, 3), TraceJob("c", 9, 1, 2)]
    )

    assert peak_gpus(trace) == 6

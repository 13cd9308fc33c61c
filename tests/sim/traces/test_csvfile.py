"""Our own format: what it takes, counts and refuses, and how little memory it needs."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.sim.traces.csvfile import read_csv, write_csv
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.trace import Trace, TraceJob

HEAD = "job_id,submit_s,duration_s,gpus\n"
GOOD = "a,0,60,1\n"


def file(folder: Path, text: str | bytes, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def reasons(trace: Trace) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(each.reason, each.count, each.first_rows) for each in trace.skipped]


def test_only_three_columns_are_needed(tmp_path: Path) -> None:
    trace = read_csv(file(tmp_path, "gpus,duration_s,submit_s\n2.0,60.5,7\n"))

    assert trace == Trace("trace", (TraceJob("line-2", 7.0, 60.5, 2),))


def test_every_column_is_read(tmp_path: Path) -> None:
    text = (
        "job_id,submit_s,duration_s,gpus,class,user,checkpointable,checkpoint_gb\n"
        'x,1,2,3,interactive,"a, b",no,4.5\n'
        "y,2,2,3,,,,\n"
    )

    first, second = read_csv(file(tmp_path, text)).jobs

    assert first == TraceJob("x", 1.0, 2.0, 3, "interactive", "a, b", False, 4.5)
    assert second == TraceJob("y", 2.0, 2.0, 3)


jobs = st.lists(
    st.builds(
        TraceJob,
        job_id=st.text(st.characters(categories=("L", "N", "Zs")), min_size=1).map(str.strip),
        submit_s=st.floats(0, 1e7),
        duration_s=st.floats(1e-3, 1e7),
        gpus=st.integers(1, 1_000),
        class_name=st.sampled_from(["batch", "interactive"]),
        user=st.sampled_from(["", "ann", 'o"b', "é,è"]),
        is_checkpointable=st.booleans(),
        checkpoint_gb=st.floats(0, 1e4),
    ).filter(lambda job: job.job_id != ""),
    min_size=1,
    max_size=8,
    unique_by=lambda job: job.job_id,
)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@given(made=jobs)
def test_what_is_written_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, name: str, made: list[TraceJob]
) -> None:
    path = tmp_path_factory.mktemp("trace") / name
    trace = Trace.of("t", made)

    write_csv(trace, path)

    assert read_csv(path) == trace
    assert path.read_bytes()[:2] == b"\x1f\x8b" or name == "t.csv"
    assert list(path.parent.iterdir()) == [path]


def test_equal_traces_make_equal_bytes(tmp_path: Path) -> None:
    trace = read_csv(file(tmp_path, HEAD + GOOD))
    first, second = tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"

    write_csv(trace, first)
    write_csv(trace, second)

    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("b,1,0,1", "the duration is not above 0"),
        ("b,1,-5,1", "the duration is not above 0"),
        ("b,1,nan,1", "duration_s is not finite"),
        ("b,inf,5,1", "submit_s is not finite"),
        ("b,-1,5,1", "the time of submission is below 0"),
        ("b,1,30m,1", "duration_s is not a plain number"),
        ("b,1,1_000,1", "duration_s is not a plain number"),
        ("b,1,00:30:00,1", "duration_s is not a plain number"),
        ("b,1,,1", "duration_s is missing"),
        ("b,1,5e9,1", "the duration is above ten years; in other units?"),
        ("b,1,5,0", "it asks for no GPU"),
        ("b,1,5,0.5", "gpus is not a whole number"),
        ("b,1,5", "not as many cells as the header"),
        ("b,1,5,1,9", "not as many cells as the header"),
        ("a,1,5,1", "its job id was there before"),
        ("job_id,submit_s,duration_s,gpus", "submit_s is not a plain number"),
    ],
)
def test_a_bad_line_is_counted_and_refused_when_strict(
    tmp_path: Path, row: str, reason: str
) -> None:
    path = file(tmp_path, f"{HEAD}{GOOD}\n{row}\nlast,9,9,9\n")

    trace = read_csv(path)

    assert [job.job_id for job in trace.jobs] == ["a", "last"]
    assert reasons(trace) == [(reason, 1, (4,))]
    assert not trace.skipped[0].is_kept
    with pytest.raises(TraceError, match="line 4: ") as refused:
        read_csv(path, is_strict=True)
    assert reason in str(refused.value)
    assert "drop --strict" in str(refused.value)


def test_bad_lines_are_counted_in_full_and_the_first_named(tmp_path: Path) -> None:
    trace = read_csv(file(tmp_path, HEAD + GOOD + "b,1,0,1\n" * 10))

    assert reasons(trace) == [("the duration is not above 0", 10, (3, 4, 5, 6, 7))]


def test_lines_out_of_order_are_sorted_and_counted(tmp_path: Path) -> None:
    path = file(tmp_path, HEAD + "a,5,1,1\nb,3,1,1\nc,9,1,1\n")

    trace = read_csv(path)

    assert [job.job_id for job in trace.jobs] == ["b", "a", "c"]
    assert reasons(trace) == [("earlier than the line before; sorted", 1, (3,))]
    assert trace.skipped[0].is_kept
    with pytest.raises(TraceError, match="line 3: earlier"):
        read_csv(path, is_strict=True)


def test_a_column_that_is_not_ours_is_said(tmp_path: Path) -> None:
    trace = read_csv(file(tmp_path, "submit_s,duration_s,gpus,colour\n0,1,1,red\n"))

    assert reasons(trace) == [("column colour is not used", 1, (1,))]


def test_columns_of_others_can_be_named(tmp_path: Path) -> None:
    path = file(tmp_path, "at,duration_s,n\n5,1,2\n")

    (job,) = read_csv(path, renamed={"at": "submit_s", "n": "gpus"}).jobs

    assert (job.submit_s, job.gpus) == (5.0, 2)


def test_calendar_times_are_counted_from_the_first_job(tmp_path: Path) -> None:
    trace = read_csv(file(tmp_path, HEAD + "a,1700000000,60,1\nb,1700000100.5,60,1\n"))

    assert [job.submit_s for job in trace.jobs] == [0.0, 100.5]
    assert reasons(trace) == [("calendar times; counted from the first job", 1, (2,))]


@pytest.mark.parametrize(
    "rows",
    ["a,100,60,1\nb,1700000000,60,1\n", "a,1700000000000,60,1\nb,1700000000,60,1\n"],
    ids=["seconds-since-1970-amid-others", "milliseconds-amid-seconds"],
)
def test_times_in_mixed_units_are_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(TraceError, match="amid others") as refused:
        read_csv(file(tmp_path, HEAD + rows))

    assert "line 2" in str(refused.value)
    assert "line 3" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (gzip.compress(b""), "is empty"),
        (b"\n\n", "is empty; it needs a header"),
        (HEAD.encode(), r"has no job that can be used \(no lines\)"),
        (f"{HEAD}a,0,0,1\n".encode(), r"has no job that can be used \(1 x the duration"),
        (b"job_id,gpus\n1,1\n", "line 1: it needs the columns submit_s, duration_s, gpus; it has"),
        (b"submit_s,submit_s,gpus\n", "line 1: column submit_s is there twice"),
        (b"\xff\xfe\x00a", "is not text"),
        (f"{HEAD}{GOOD}".encode() + b"b,\xff,1,1\n", "is not UTF-8 text"),
        (gzip.compress(f"{HEAD}{GOOD}".encode() * 999)[:-20], "breaks off or is damaged"),
        (b"PK\x03\x04rest", "is a zip file; unpack it"),
        (b"PAR1rest", "is a Parquet file"),
        (f'{HEAD}"a,0,60,1\n'.encode(), "line 2: no CSV"),
        (HEAD.encode() + b"a" * (1 << 21), "line 2: longer than 1048576 characters"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = file(tmp_path, content)

    with pytest.raises(TraceError, match=said) as refused:
        read_csv(path)

    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no file"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(TraceError, match="is a folder"):
        read_csv(tmp_path)


def test_a_trace_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    trace = read_csv(file(tmp_path, HEAD + GOOD))

    with pytest.raises(TraceError, match="cannot write"):
        write_csv(trace, tmp_path / "no" / "such" / "t.csv")


def test_a_windows_file_with_a_mark_at_its_head_reads(tmp_path: Path) -> None:
    text = "\ufeff" + (HEAD + GOOD).replace("\n", "\r\n")

    assert len(read_csv(file(tmp_path, text)).jobs) == 1


@pytest.mark.slow
def test_a_large_file_needs_no_more_memory_than_its_jobs(tmp_path: Path) -> None:
    # 240 MB of lines, of which one in a hundred is a job: a gigabyte is only longer.
    path = tmp_path / "large.csv.gz"
    padding = "x" * 4_000
    with gzip.open(path, "wb", compresslevel=1) as raw, io.TextIOWrapper(raw) as text:
        text.write("submit_s,duration_s,gpus,note\n")
        for row in range(60_000):
            text.write(f"{row},{60 if row % 100 == 0 else 0},1,{padding}\n")
    parts: list[float] = []

    tracemalloc.start()
    trace = read_csv(path, on_part=parts.append)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(trace.jobs) == 600
    assert sum(each.count for each in trace.skipped) == 59_400 + 1
    assert most < 4 * 2**20
    assert parts == sorted(parts)
    assert 0.0 < parts[0] <= parts[-1] <= 1.0

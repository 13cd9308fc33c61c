"""Importers of job traces, on lines as their sources publish them, and on the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.sim.traces.importers.alibaba_pod import read_alibaba_pod
from hybrid.sim.traces.importers.philly import read_philly
from hybrid.sim.traces.importers.swf import read_swf
from hybrid.sim.traces.reading import TraceError
from hybrid.sim.traces.trace import DAY_S, Trace
from tests.sim.realtraces import real_trace

PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,2,5902.0,6214e9
2017-10-10 00:00:01,10,8,80,6214e9
someday,10,8,80,6214e9
"""
_PODS_HEAD = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
PODS = f"""{_PODS_HEAD}\
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427070
openb-pod-0005,20000,65536,0,0,,LS,Running,2759674,12902960,2759676
openb-pod-0062,2000,4096,8,1000,V100M16|V100M32,BE,Pending,9000000,9000100,
openb-pod-0063,2000,4096,8,1000,,BE,Failed,9000000,,9000001
openb-pod-0064,2000,4096,8,1000,,BE,Succeeded,9000000,9000002,9000002
"""
SWF = """; Version: 2.2
; Computer: Small Cluster
;   UnixStartTime: 1000000000
; Note: a note: with a colon

    1       0      5    100    4     -1   -1     8   200     -1  1   7   1  1   1 -1  -1 -1
    2      10     -1     -1   -1     -1   -1     8   200     -1  5   7   1  1   1 -1  -1 -1
    3      20      5    100   -1     -1   -1     9   200     -1  0  -1   1  1   1 -1  -1 -1
    4      30      5    100   -1     -1   -1    -1   200     -1  1   7   1  1   1 -1  -1 -1
    5      40      5      0    4     -1   -1     8   200     -1  1   7   1  1   1 -1  -1 -1
    6      50      5     60    4     -1   -1     8   200     -1  2   7   1  1   1 -1  -1 -1
    7      60      5     60    4     -1
    8   65.25      5   60.5    4     -1   -1     8   200     -1  1   7   1  1   1 -1  -1 -1
"""


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def counted(trace: Trace) -> dict[str, tuple[int, ...]]:
    return {each.reason: each.first_rows for each in trace.skipped}


def test_philly_is_counted_from_the_midnight_before_the_first_job(tmp_path: Path) -> None:
    trace = read_philly(file(tmp_path, "philly.csv", PHILLY))

    assert [(job.job_id, job.submit_s, job.duration_s, job.gpus) for job in trace.jobs] == [
        ("philly-000002", 6 * 3_600 + 13 * 60 + 3, 2_951.0, 2),
        ("philly-000001", 7 * 3_600 + 1 * 60 + 55, 66.0, 1),
        ("philly-000003", DAY_S + 1, 10.0, 8),
    ]
    assert [job.user for job in trace.jobs] == ["6214e9", "11cb48", "6214e9"]
    assert counted(trace) == {
        "earlier than the line before; sorted": (3,),
        "the time of submission is not one": (5,),
    }


def test_philly_as_a_shorter_table_is_the_same(tmp_path: Path) -> None:
    short = "submit_s,duration_s,num_gpus,vc\n22383,2951,2,6214e9\n25315,66,1,11cb48\n"

    trace = read_philly(file(tmp_path, "p.csv", short))

    assert [(job.submit_s, job.gpus) for job in trace.jobs] == [(22_383.0, 2), (25_315.0, 1)]


def test_a_file_of_another_kind_is_refused_with_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"line 1: it needs .*timestamp.*; it has name"):
        read_philly(file(tmp_path, "p.csv", PODS))
    with pytest.raises(TraceError, match="it needs the columns name, num_gpu"):
        read_alibaba_pod(file(tmp_path, "q.csv", PHILLY))


def test_pods_run_from_their_placing_to_their_end(tmp_path: Path) -> None:
    trace = read_alibaba_pod(file(tmp_path, "pods.csv", PODS))

    assert [
        (job.job_id, job.submit_s, job.duration_s, job.gpus, job.user) for job in trace.jobs
    ] == [
        ("openb-pod-0000", 0.0, 12_537_496.0, 1, "LS"),
        ("openb-pod-0001", 427_061.0, 12_902_960.0 - 427_070.0, 1, "LS"),
    ]
    assert counted(trace) == {
        "a share of a GPU; counted as a whole one": (3,),
        "it asks for no GPU": (4,),
        "it never got a place": (5,),
        "its end is missing": (6,),
        "the duration is not above 0": (7,),
    }


def test_swf_takes_what_ran_and_counts_the_rest(tmp_path: Path) -> None:
    trace = read_swf(file(tmp_path, "log.swf", SWF), processors_per_gpu=2)

    assert trace.name == "Small Cluster"
    assert [
        (job.job_id, job.submit_s, job.duration_s, job.gpus, job.user) for job in trace.jobs
    ] == [
        ("swf-1", 0.0, 100.0, 2, "user-7"),
        ("swf-3", 20.0, 100.0, 5, ""),
        ("swf-8", 65.25, 60.5, 2, "user-7"),
    ]
    assert counted(trace) == {
        "its run time is missing": (7,),
        "its number of processors is missing": (9,),
        "the duration is not above 0": (10,),
        "a part of a job, which has a line of its own": (11,),
        "not 18 numbers": (12,),
    }


def test_swf_refuses_a_bad_line_when_strict_and_a_ratio_that_is_none(tmp_path: Path) -> None:
    path = file(tmp_path, "log.swf", SWF)

    with pytest.raises(TraceError, match="line 7: its run time is missing"):
        read_swf(path, is_strict=True)
    with pytest.raises(ValueError, match="processors_per_gpu"):
        read_swf(path, processors_per_gpu=0.0)


@pytest.mark.slow
def test_the_real_philly_trace_is_what_the_papers_say() -> None:
    trace = read_philly(real_trace("jobs/philly_jobs.csv.gz"), is_strict=True)

    assert len(trace.jobs) == 82_247
    assert trace.gpu_s / 3_600 == pytest.approx(978_078, abs=1)
    assert len(trace.window(24, 84).jobs) == 67_767

"""Tests of scripts/bench: its parts at tiny sizes, and the shape of what it prints.

No number is asserted here: what is fast enough is said by scripts/bench itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from hybrid.adapters.ray import RayCluster
from hybrid.control.params import ControlParams
from hybrid.core.policy.params import PolicyParams
from hybrid.node.environment import TAG
from scripts.bench_parts import big, clouds, growth, mixed, policy, tick
from scripts.bench_parts.burst import Burst, lateness
from scripts.bench_parts.byhand import end, recipes
from scripts.bench_parts.commands import interleaved
from scripts.bench_parts.figures import BenchError, Figure, document, timed
from scripts.bench_parts.machine import Footprint, facts, rollup
from scripts.bench_parts.main import PARTS, main
from scripts.bench_parts.rest import ledger_growth

ROOT = Path(__file__).parent.parent
TINY = big.Size(hosts=3, rented=5, shapes=12, tasks=120)


def figure(value: float | None, target: float | None) -> Figure:
    return Figure(name="a", what="b", value=value, unit="ms", target=target)


# --- figures and the document -------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "target", "is_met"),
    [(1.0, 1.0, True), (1.1, 1.0, False), (1.0, None, None), (None, 1.0, None)],
)
def test_a_target_is_met_up_to_its_value(
    value: float | None, target: float | None, is_met: bool | None
) -> None:
    assert figure(value, target).is_met is is_met


def test_the_document_tells_missed_targets_and_failures() -> None:
    printed = document([figure(2.0, 1.0)], {"up": "no"}, {"at": "now"})

    assert json.loads(json.dumps(printed)) == {
        "at": "now",
        "figures": [
            {
                "name": "a",
                "what": "b",
                "value": 2.0,
                "unit": "ms",
                "target": 1.0,
                "is_met": False,
                "details": {},
            }
        ],
        "met": [],
        "missed": ["a"],
        "failures": {"up": "no"},
    }


def test_the_facts_name_machine_and_versions_but_no_folder() -> None:
    text = json.dumps(facts())

    assert {"commit", "machine", "python", "ray"} <= set(json.loads(text))
    assert str(ROOT) not in text


def test_times_come_from_runs_after_a_first_that_does_not_count() -> None:
    calls = []

    times = timed(lambda: calls.append(1), runs=3)

    assert (len(calls), len(times.wall_s), len(times.cpu_s)) == (4, 3, 3)
    assert {"best_ms", "median_ms", "worst_ms", "cpu_median_ms", "runs"} == set(times.details())


# --- the large cluster --------------------------------------------------------------------


def test_the_large_cluster_is_the_same_each_time_and_as_large_as_it_says(tmp_path: Path) -> None:
    with big.big_world(tmp_path, TINY, room=0) as world:
        instances = world.loop.book.all()

        reply = big.wire_reply(TINY, instances)

        assert reply == big.wire_reply(TINY, instances)
        with big.serving(reply) as address:
            view = RayCluster(address, "").view()
    assert len(view.nodes) == TINY.nodes
    assert len(view.demands) == TINY.shapes
    assert sum(demand.count for demand in view.demands) == TINY.tasks


def test_the_shapes_of_the_full_size_are_all_different() -> None:
    kinds = list(big._kinds(big.Size().shapes))

    assert len({json.dumps(kind) for kind in kinds}) == len(kinds)


@pytest.mark.slow
def test_the_clouds_part_counts_calls() -> None:
    found = {f.name: f for f in clouds.figures(count=6, in_turn_count=3, latency_s=0.01)}

    for name in ("aws", "gcp", "baidu"):
        launches, lists = found[f"calls_per_launch_{name}"], found[f"list_calls_{name}"]
        assert launches.details["instances"] == 2
        assert launches.value is not None
        assert launches.value >= 1
        assert lists.details["listed"] == 2
    assert found["launch_at_once_ratio"].value is not None


@pytest.mark.slow
def test_the_mixed_part_tells_our_time_from_the_emulators() -> None:
    found = {f.name: f for f in mixed.figures(count=30, runs=1)}

    assert list(found) == ["mixed_tick_ms", "mixed_rss_growth_mb", "mixed_renewing_tick_ms"]
    words = "30 instances (6 booting, 3 draining, 18 running, 3 terminating)"
    assert words in found["mixed_tick_ms"].what
    theirs = found["mixed_tick_ms"].details["emulators_cpu_ms"]
    assert isinstance(theirs, dict)
    assert theirs.keys() == {"aws", "gcp", "baidu"}
    assert found["mixed_renewing_tick_ms"].details["runs"] == 1


@pytest.mark.slow
def test_the_policy_part_asks_ray_for_the_same_requests() -> None:
    found = {f.name: f for f in policy.figures((20,), (40,), runs=2)}

    assert list(found) == [
        "decide_jobs_20_p99_ms",
        "decide_to_ray_40_ratio",
        "usd_to_ray_40_ratio",
        "decide_to_ray_40_mix_ratio",
        "usd_to_ray_40_mix_ratio",
    ]
    actions = found["decide_jobs_20_p99_ms"].details["actions"]
    assert isinstance(actions, dict)
    assert actions["launch"] > 0
    bought = found["usd_to_ray_40_ratio"].details
    assert isinstance(bought["ours"], dict)
    assert isinstance(bought["rays"], dict)
    # Everybody gets a place: no fewer GPUs are rented than are asked for.
    asked = sum(shape["GPU"] for shape in policy.pending(40))
    for nodes in (bought["ours"], bought["rays"]):
        assert sum(float(size) * count for size, count in nodes.items()) >= asked
    # A process tells them to another as JSON.
    json.dumps([asdict(figure) for figure in found.values()])


def test_the_tick_part_measures_what_it_says() -> None:
    found = {f.name: f for f in tick.figures(TINY, runs=1)}

    assert list(found) == [
        "decide_ms",
        "tick_ms",
        "view_ms",
        "decide_launching_ms",
        "tick_launching_ms",
        "decide_gangs_ms",
    ]
    assert found["decide_ms"].details["actions"] == 0
    assert found["decide_launching_ms"].details["actions"] == 10
    assert found["tick_ms"].details["events_per_tick"] == 0
    assert found["decide_gangs_ms"].target is None


# --- the small parts ----------------------------------------------------------------------


def test_a_launch_at_the_earliest_moment_is_not_late() -> None:
    params = ControlParams(tick_s=2.0, policy=PolicyParams(max_wait_s=5.0, stabilisation_s=3.0))
    burst = Burst(
        seen_at_s=100.0, asked_at_s=109.0, booting_at_s=None, facts={"reason_waiting_s": 8.0}
    )

    late = lateness(burst, params)

    assert (late.ours, late.outer) == (0.0, 0.5)


def test_a_launch_that_does_not_say_how_long_work_waited_cannot_be_judged() -> None:
    with pytest.raises(BenchError, match="does not say how long work waited"):
        lateness(Burst(0.0, 1.0, None, {}), ControlParams())


def test_sizes_are_read_in_megabytes() -> None:
    assert rollup("00-7f ---p 00000000 00:00 0   [rollup]\nRss:      1000 kB\n") == {"Rss": 1.024}


def test_the_footprint_of_this_process_is_read() -> None:
    found = Footprint.of(os.getpid())

    assert found.rss_mb >= found.pss_mb >= 0
    assert found.threads >= 1
    assert found.fds > 2


def test_commands_take_turns() -> None:
    found = interleaved({"a": ["true"], "b": ["true"]}, dict(os.environ), rounds=2)

    assert {name: len(times) for name, times in found.items()} == {"a": 2, "b": 2}


def test_a_ledger_grows_by_its_events(tmp_path: Path) -> None:
    found = ledger_growth(tmp_path, events=200)

    assert found.value is not None
    assert found.value > 0


def test_recipes_begin_with_the_head(tmp_path: Path) -> None:
    for name in ("alpha", "head"):
        folder = tmp_path / "nodes" / name
        folder.mkdir(parents=True)
        (folder / "node.json").write_text(json.dumps({"id": name, "command": ["x"], "env": {}}))

    assert [recipe.name for recipe in recipes(tmp_path)] == ["head", "alpha"]


def test_what_was_started_by_hand_is_ended_by_its_mark() -> None:
    marked, other = (
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"], env={**os.environ, TAG: tag}
        )
        for tag in ("bench/mine", "bench/other")
    )
    try:
        _until_marked(marked.pid)

        end("bench/mine")

        assert marked.wait(timeout=10) == -signal.SIGTERM
        assert other.poll() is None
    finally:
        for process in (marked, other):
            process.kill()
            process.wait()


def _until_marked(pid: int) -> None:
    """Wait until the process has become the program, whose environment shows the mark."""
    while b"time.sleep" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.01)


# --- the command --------------------------------------------------------------------------


def test_the_help_names_all_parts() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "bench"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in PARTS)


def test_a_saved_document_becomes_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [figure(2.0, 1.0), Figure("c", "d", None, "s")]
    printed = document(found, {"up": "no"}, {**facts(), "contention_after": 1.0})
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(printed))

    assert main(["--table", str(path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "| `a` | b | 2 ms | 1 | **no** |" in lines
    assert "| `c` | d | unknown s |  |  |" in lines
    assert "`up` could not be measured: no" in lines


def grown(size: int, ms: float) -> Figure:
    details = {"cpu_median_ms": ms / 2}
    return Figure(f"decide_jobs_{size}_p99_ms", "b", ms, "ms", details=details)


def test_a_saved_document_becomes_a_picture_of_growth(tmp_path: Path) -> None:
    printed = document([grown(1_000, 20.0), grown(100, 2.0), figure(1, 1)], {}, facts())
    path, picture = tmp_path / "bench.json", tmp_path / "growth.svg"
    path.write_text(json.dumps({**printed, "contention_after": 1.0}))

    assert growth.points(printed) == [(100, 1.0, 2.0), (1_000, 10.0, 20.0)]
    assert main(["--table", str(path), "--growth", str(picture)]) == 0
    drawn = picture.read_text()
    assert "<svg" in drawn
    assert main(["--table", str(path), "--growth", str(picture)]) == 0
    assert picture.read_text() == drawn


def test_nothing_grows_with_one_size() -> None:
    with pytest.raises(BenchError, match="measure with --only policy first"):
        growth.points(document([grown(100, 2.0)], {}, facts()))


def test_an_unknown_part_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "cli,speed"])

    assert ended.value.code == 2
    assert "no part speed; there are tick, clouds, mixed, policy, up" in capsys.readouterr().err

"""`hybrid plan --offline`: the real policy over the configuration, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.core.offline import OfflinePlanView
from tests.cli.conftest import Lab, Result, Run
from tests.cli.test_speed import loaded

NOW_S = 1_788_500_000.0
"""A day in September 2026: listed prices grow old."""

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
HEAD = (
    "name: lab\nonprem:\n  hosts:\n    - {name: gpu-1, accelerators: A100:8, cpus: 64}\n"
    "providers:\n  aws:\n    regions:\n      us-east-1:\n"
    "        image: ami-0123456789abcdef0\n"
    "        subnets: {us-east-1a: subnet-0123456789abcdef0}\n"
)
LARGE = "infra: local, accelerators: A100:8, cpus: 64, usd_per_hour: 20, instance_type: large"
SMALL = "infra: local, accelerators: A100:1, cpus: 8, usd_per_hour: 3, instance_type: small"
SPOT = "infra: aws/us-east-1/us-east-1a, instance_type: g5.12xlarge, use_spot: true"


@pytest.fixture(autouse=True)
def _it_is_september(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now_s", lambda _clock: NOW_S)


def write(
    tmp_path: Path, *pools: str, kind: str = "any_of", budget: str = "nodes: 9", more: str = ""
) -> None:
    lines = "".join(f"    - {{{pool}}}\n" for pool in pools)
    text = f"{HEAD}clouds:\n  {kind}:\n{lines}budget: {{{budget}}}\n{more}"
    (tmp_path / "hybrid.yaml").write_text(text, encoding="utf-8")


def answer(shown: Result) -> OfflinePlanView:
    assert shown.code == 0, shown.err
    return OfflinePlanView.model_validate(json.loads(shown.out))


def plan(run: Run, *words: str) -> OfflinePlanView:
    return answer(run("plan", "--offline", *words, "--json"))


def rented(view: OfflinePlanView) -> dict[str, int]:
    return {item.pool.instance_type: item.count for item in view.rented}


def reasons(view: OfflinePlanView) -> dict[str, str]:
    return {item.pool.instance_type: item.reason.code for item in view.spared}


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
@pytest.mark.parametrize("home", [(), ("--home-busy",)], ids=["free", "busy"])
def test_every_example_has_a_plan(run: Run, file: Path, home: tuple[str, ...]) -> None:
    view = plan(run, str(file), *home, "--count", "20")

    assert view.home_count + view.cloud_count + view.waiting_count == 20
    assert view.usd_per_hour == pytest.approx(sum(item.usd_per_hour for item in view.rented))
    assert all(item.reason.message for item in view.rented)
    assert all(item.reason.message for item in view.spared)
    assert "Traceback" not in run("plan", "--offline", str(file), *home).out


def test_home_comes_first_and_the_rest_is_rented_for(run: Run, tmp_path: Path) -> None:
    write(tmp_path, LARGE, SMALL)

    view = plan(run, "--gpus", "A100:1", "--count", "10")

    assert (view.home_count, view.cloud_count, view.waiting_count) == (8, 2, 0)
    assert rented(view) == {"small": 2}
    assert reasons(view) == {"large": "not_needed"}
    assert view.usd_per_hour == 6.0
    assert view.rented[0].reason.code == "queue_wait"


def test_with_home_busy_all_of_it_is_rented_for(run: Run, tmp_path: Path) -> None:
    write(tmp_path, LARGE, SMALL)

    view = plan(run, "--gpus", "A100:8", "--count", "2", "--home-busy")

    assert rented(view) == {"large": 2}
    assert reasons(view) == {"small": "does_not_fit"}


def test_ordered_pools_are_taken_in_order(run: Run, tmp_path: Path) -> None:
    write(tmp_path, f"{LARGE}, max_nodes: 1", SMALL, kind="ordered")

    view = plan(run, "--gpus", "A100:1", "--count", "9", "--home-busy")

    assert rented(view) == {"large": 1, "small": 1}


def test_caps_hold_and_what_waits_says_which(run: Run, tmp_path: Path) -> None:
    write(tmp_path, LARGE, SMALL, budget="usd_per_hour: 25")

    view = plan(run, "--gpus", "A100:8", "--count", "3", "--home-busy")

    assert rented(view) == {"large": 1}
    assert view.waiting_count == 2
    (waiting,) = (f for f in view.findings if f.reason.code != "launching")
    assert (waiting.count, waiting.reason.code) == (2, "cap_usd_per_hour")
    assert "budget.usd_per_hour is 25" in waiting.reason.message


def test_a_spared_offer_says_which_limit_it_is_at(run: Run, tmp_path: Path) -> None:
    write(tmp_path, f"{LARGE}, max_nodes: 0", SMALL)

    assert reasons(plan(run, "--gpus", "A100:1", "--home-busy"))["large"] == "max_nodes"


def test_the_ramp_is_told_in_looks_and_hides_nothing(run: Run, tmp_path: Path) -> None:
    write(tmp_path, f"{SMALL}, stock: 50", budget="nodes: 50")

    view = plan(run, "--gpus", "A100:1", "--count", "25", "--home-busy")

    assert rented(view) == {"small": 25}
    assert view.tick_count == 3


def test_a_spot_price_nobody_knows_offline_makes_no_offer(run: Run, tmp_path: Path) -> None:
    write(tmp_path, SPOT)

    view = plan(run, "--gpus", "A10G:4")
    shown = run("plan", "--offline", "--gpus", "A10G:4")

    assert view.waiting_count == 1
    assert reasons(view) == {"g5.12xlarge": "no_price"}
    assert "only a running controller asks AWS" in shown.out
    # Nothing else can hold it, and a person must not take that for the truth of the cloud.
    assert view.findings[0].is_for_ever


def test_a_listed_price_comes_with_its_day_and_source(run: Run, tmp_path: Path) -> None:
    write(tmp_path, SPOT.replace(", use_spot: true", ""))

    view = plan(run, "--gpus", "A10G:4")
    shown = run("plan", "--offline", "--gpus", "A10G:4")

    (item,) = view.rented
    assert not item.pool.is_own_price
    assert (item.pool.price_source, str(item.pool.as_of)) == ("aws-karpenter", "2026-07-20")
    assert "list 2026-07-20" in shown.out


def test_a_price_of_the_list_that_is_too_old_makes_no_offer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemClock, "now_s", lambda _clock: NOW_S + 400 * 86_400)
    write(tmp_path, SPOT.replace(", use_spot: true", ""))

    view = plan(run, "--gpus", "A10G:4")
    shown = run("plan", "--offline", "--gpus", "A10G:4")

    assert reasons(view) == {"g5.12xlarge": "stale"}
    assert "no price known: the price is from 2026-07-20" in shown.out
    assert "is not trusted" in shown.out


def test_a_shape_may_be_anything_that_ray_counts(run: Run, tmp_path: Path) -> None:
    write(tmp_path, LARGE)

    view = plan(run, "--shape", "GPU=0.5, CPU=16,memory=1GiB", "--count", "5", "--home-busy")

    assert view.shape == {"GPU": 0.5, "CPU": 16.0, "memory": 2**30}
    # Memory of the local cloud's machines is 2 GiB unless the file says more.
    assert rented(view) == {"large": 3}


def test_a_host_without_a_count_of_cpus_takes_no_request_for_them_and_says_so(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "hybrid.yaml").write_text(
        "name: lab\nonprem:\n  hosts:\n    - {name: gpu-1, accelerators: A100:8}\n"
    )

    assert plan(run, "--gpus", "A100:1").home_count == 1
    view = plan(run, "--shape", "GPU=1,CPU=2")

    assert view.home_count == 0
    assert any("The CPU of gpu-1 is not in the file" in note for note in view.notes)


@pytest.mark.parametrize("gpus", ["A100:1", "a100", "A100-80GB:1"])
def test_a_type_is_asked_for_as_the_machines_name_it(run: Run, tmp_path: Path, gpus: str) -> None:
    write(tmp_path, SMALL)

    assert plan(run, "--gpus", gpus).home_count == 1


def test_it_is_the_same_twice_and_writes_nothing(run: Run, tmp_path: Path, home: Path) -> None:
    write(tmp_path, LARGE, SMALL, SPOT)
    words = ("plan", "--offline", "--count", "9", "--home-busy", "--json")

    first, second = run(*words), run(*words)

    assert first == second
    assert not home.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["hybrid.yaml"]


def test_a_running_cluster_is_not_asked(lab: Lab, run: Run, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    lab.service.problem = AssertionError("it was asked")

    assert run("plan", "--offline").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--shape", "GPU"), "'GPU' is no resource; write NAME=AMOUNT"),
        (("--shape", "GPU=nan"), "'nan' is no amount of GPU"),
        (("--shape", "GPU=0"), "'0' is no amount of GPU"),
        (("--shape", "GPU=-1"), "'-1' is no amount of GPU"),
        (("--shape", "GPU=inf"), "'inf' is no amount of GPU"),
        (("--shape", "GPU=1,GPU=2"), "GPU is there twice"),
        (("--shape", "memory=64"), "'64' is no amount of memory; write for example 64GiB"),
        (("--shape", "GPU=1", "--gpus", "A100"), "exclude one another"),
        (("--gpus", "A100x8"), "A100x8"),
        (("--count", "0"), "--count"),
        (("nope.yaml",), "nope.yaml"),
    ],
    ids=" ".join,
)
def test_wrong_use_ends_with_code_2(run: Run, words: tuple[str, ...], says: str) -> None:
    shown = run("plan", "--offline", *words)

    assert shown.code == 2
    assert says in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("words", [("--gpus", "A100"), ("--count", "2"), ("--home-busy",)])
def test_its_options_need_offline(run: Run, words: tuple[str, ...]) -> None:
    shown = run("plan", *words)

    assert shown.code == 2
    assert "need --offline" in shown.err


@pytest.mark.slow
def test_it_imports_no_sdk_and_no_ray(tmp_path: Path, environment: dict[str, str]) -> None:
    points = tmp_path / "metadata" / "hybrid_burst-0.1.0.dist-info" / "entry_points.txt"
    lines = [f"{name} = providers.{name}:make" for name in ("aws", "baidu", "gcp", "local")]
    points.write_text("\n".join(["[hybrid.providers]", *lines, ""]))
    file = next(file for file in CONFIGS if file.stem == "three-clouds")

    heavy, code = loaded(["plan", "--offline", str(file)], environment).split("|")

    assert code == "0"
    assert set(heavy.split(",")) <= {"pydantic", "yaml"}

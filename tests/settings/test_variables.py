"""Tests of environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.settings import describe_variables, environment, traces
from tests.settings.writing import CLOUD, load_text, problem, problems


def test_a_variable_wins_over_the_file(tmp_path: Path) -> None:
    env = {
        "HYBRID_CONTROLLER__PORT": "9001",
        "HYBRID_BURST__QUEUE__MAX_WAIT": "7m",
        "HYBRID_NAME": "b",
        "HYBRID_RAY__VERSION": "2.60",
    }

    settings = load_text(tmp_path, "name: a\ncontroller: {port: 9000, tick: 1s}", env)

    assert settings.controller.port == 9001
    assert settings.controller.tick_s == 1.0
    assert settings.burst.queue.max_wait_s == 420.0
    assert settings.name == "b"
    assert settings.ray.version == "2.60"


def test_an_empty_variable_sets_nothing_and_null_sets_the_default(tmp_path: Path) -> None:
    text = "name: a\nhead: {port: 9000, dashboard_port: 9001}"
    env = {"HYBRID_HEAD__PORT": "", "HYBRID_HEAD__DASHBOARD_PORT": "null"}

    head = load_text(tmp_path, text, env).head

    assert (head.port, head.dashboard_port) == (9000, 8265)


def test_a_bad_value_names_the_variable(tmp_path: Path) -> None:
    found = problem(tmp_path, "name: a", {"HYBRID_CONTROLLER__PORT": "abc"})

    assert (
        found
        == "HYBRID_CONTROLLER__PORT: controller.port: 'abc' is not a port; write a number or auto"
    )


def test_mistakes_of_the_file_and_of_the_environment_are_told_together(tmp_path: Path) -> None:
    found = problems(tmp_path, "name: A", {"HYBRID_LEASE__LENGTH": "5"})

    assert [line.split(":")[0] for line in found] == ["HYBRID_LEASE__LENGTH", "hybrid.yaml"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("HYBRID_CONTROLER__PORT", "did you mean HYBRID_CONTROLLER__PORT?"),
        ("HYBRID_LEGDER_URL", "did you mean HYBRID_LEDGER_URL?"),
        ("HYBRID_A__B", "see `hybrid config env` for all"),
        ("HYBRID_ONPREM__HOSTS", "see `hybrid config env` for all"),
    ],
)
def test_a_variable_that_looks_like_a_setting_and_is_none_is_refused(
    tmp_path: Path, name: str, hint: str
) -> None:
    assert (
        problem(tmp_path, "name: a", {name: "1"}) == f"{name}: this variable sets nothing; {hint}"
    )


@pytest.mark.parametrize(
    "name", ["HYBRID_NODE_TAG", "HYBRIDS", "HYBRID_THEME", "hybrid_name", "HYBRID_TRACES"]
)
def test_other_variables_are_left_alone(tmp_path: Path, name: str) -> None:
    assert load_text(tmp_path, "name: a", {name: "1"}).name == "a"


def test_a_variable_does_not_hide_that_its_section_is_wrong(tmp_path: Path) -> None:
    found = problem(tmp_path, "name: a\nlease: 5", {"HYBRID_LEASE__LENGTH": "5m"})

    assert "lease: '5' is not a mapping" in found


def test_the_budget_can_come_from_the_environment_alone(tmp_path: Path) -> None:
    text = "name: a" + CLOUD.split("budget")[0]

    assert load_text(tmp_path, text, {"HYBRID_BUDGET__NODES": "1"}).caps.node_count == 1


def test_every_variable_is_described_once() -> None:
    described = describe_variables()

    names = [name for name, _ in described]
    assert len(names) == len(set(names))
    assert ("HYBRID_LEDGER_URL", "controller.ledger") in described
    assert ("HYBRID_RAY__HEALTH__KEEPALIVE_TIME", "ray.health.keepalive_time") in described
    assert not any("hosts" in path or "providers" in path for _, path in described)


def test_environment_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_CONFIG", "x")

    assert environment()["HYBRID_CONFIG"] == "x"


def test_the_folder_of_traces_is_none_unless_it_is_named() -> None:
    assert traces({}) is None
    assert traces({"HYBRID_TRACES": ""}) is None
    assert traces({"HYBRID_TRACES": "~/t", "HOME": "/h"}) == Path("/h/t")

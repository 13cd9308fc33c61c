"""`hybrid config` and `hybrid version`, in a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Lab, Run

GOOD = "name: lab\nonprem:\n  hosts:\n    - {name: gpu-1, accelerators: GPU:4}\n"
BAD = "name: Lab\nonprem:\n  hosts:\n    - {name: a, accelerators: A100x8}\n"


@pytest.fixture
def good(tmp_path: Path) -> str:
    (tmp_path / "good.yaml").write_text(GOOD)
    return "good.yaml"


@pytest.fixture
def bad(tmp_path: Path) -> str:
    (tmp_path / "bad.yaml").write_text(BAD)
    return "bad.yaml"


def test_validate_says_that_a_file_is_good(run: Run, good: str) -> None:
    shown = run("config", "validate", good)

    assert shown.code == 0
    assert shown.out.startswith("good.yaml is good: cluster lab, 1 on-prem host")


def test_validate_names_every_problem_with_its_line(run: Run, bad: str) -> None:
    shown = run("config", "validate", bad)

    assert shown.code == 2
    assert "bad.yaml: name: " in shown.err
    assert "accelerators: 'A100x8'" in shown.err
    assert "(line 4)" in shown.err
    assert len(shown.err.splitlines()) == 2


def test_validate_json_is_for_editors(run: Run, good: str, bad: str) -> None:
    fine = run("config", "validate", good, "--json")
    wrong = run("config", "validate", bad, "--json")

    assert json.loads(fine.out)["is_valid"] is True
    answer = json.loads(wrong.out)
    assert (wrong.code, answer["is_valid"]) == (2, False)
    assert {problem["line"] for problem in answer["problems"]} == {1, 4}
    assert {problem["path"] for problem in answer["problems"]} == {
        "name",
        "onprem.hosts[0].accelerators",
    }


def test_a_missing_file_is_a_configuration_error(run: Run) -> None:
    shown = run("config", "validate", "nope.yaml")

    assert shown.code == 2
    assert shown.err.startswith("Error: nope.yaml")


def test_show_fills_in_defaults(run: Run, good: str) -> None:
    as_yaml = yaml.safe_load(run("config", "show", good).out)
    as_json = json.loads(run("config", "show", good, "--json").out)

    assert as_yaml == as_json
    assert as_yaml["name"] == "lab"
    assert as_yaml["lease"]["length"] == "30m"


def test_show_says_where_values_come_from(
    run: Run, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_CONTROLLER__TICK", "2s")

    lines = run("config", "show", good, "--origins").out.splitlines()

    origin_of = {line.split()[0]: line.split()[-1] for line in lines}
    assert origin_of["name"] == "good.yaml:1"
    assert origin_of["controller.tick"] == "HYBRID_CONTROLLER__TICK"
    assert origin_of["lease.length"] == "default"
    assert json.loads(run("config", "show", good, "--origins", "--json").out)[0]["path"] == "name"


def test_show_running_asks_the_controller(lab: Lab, run: Run) -> None:
    assert json.loads(run("config", "show", "--running", "--json").out)["name"] == "lab"
    assert "max_wait: 5m" in run("config", "show", "--running").out
    assert run("config", "show", "--running", "--origins").code == 2


def test_schema_is_a_json_schema(run: Run) -> None:
    schema = json.loads(run("config", "schema").out)

    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "onprem" in schema["properties"]


def test_env_lists_variables(run: Run) -> None:
    assert "HYBRID_CONTROLLER__PORT" in run("config", "env").out


def test_the_variables_of_the_command_line_are_no_settings(
    run: Run, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ADDRESS", "TOKEN", "CLUSTER", "CONTROLLER_COMMAND"):
        monkeypatch.setenv(f"HYBRID_{name}", "x")

    assert run("config", "validate", good).code == 0


def test_version_names_hybrid_python_and_ray(run: Run) -> None:
    versions = json.loads(run("version", "--json").out)

    assert set(versions) == {"hybrid", "python", "ray"}
    assert run("version").out.startswith(f"hybrid {versions['hybrid']} (Python ")


def test_validate_in_an_empty_folder_says_that_there_is_no_file(run: Run) -> None:
    shown = run("config", "validate")

    assert shown.code == 0
    assert shown.out.startswith(
        "There is no hybrid.yaml here; `hybrid up` would use the embedded default: cluster local, "
    )

"""`jobs:` of hybrid.yaml: how fast types of GPU are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.writing import load_text, problem


def test_types_are_named_as_offers_name_them(tmp_path: Path) -> None:
    content = "name: lab\njobs:\n  gpu_speeds: {nvidia-tesla-t4: 0.3, A100-80g: 1, h100: 2.1}\n"
    speeds = load_text(tmp_path, content).jobs.gpu_speeds
    assert speeds == {"T4": 0.3, "A100-80GB": 1.0, "H100": 2.1}


def test_none_is_assumed(tmp_path: Path) -> None:
    assert load_text(tmp_path, "name: lab\n").jobs.gpu_speeds == {}


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{H100: 0}", "is no speed of H100; write how many times as fast"),
        ("{H100: -1}", "is no speed of H100"),
        ("{H100: .nan}", "is no speed of H100"),
        ("{H100: .inf}", "is no speed of H100"),
        ("{H100: quick}", "'quick' is no speed of H100"),
        ("{H100: [2]}", "is no speed of H100"),
        ("2.1", "is not a mapping; write {H100: 2.1}"),
    ],
)
def test_what_is_no_speed_is_refused_with_its_place(
    tmp_path: Path, written: str, says: str
) -> None:
    found = problem(tmp_path, f"name: lab\njobs:\n  gpu_speeds: {written}\n")
    assert "jobs.gpu_speeds: " in found
    assert says in found

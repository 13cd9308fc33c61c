"""`--html` and `--png` of `hybrid sim run` and `hybrid sim compare`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.cli.exits import ExitCode
from tests.cli.conftest import Run

JOBS = "submit_s,duration_s,gpus\n" + "".join(
    f"{60 * number},{600 + 97 * number},{1 + number % 3}\n" for number in range(30)
)


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    path = tmp_path / "mine.csv"
    path.write_text(JOBS, encoding="utf-8")
    return ["--trace", str(path), "--gpus", "8"]


@pytest.mark.slow
def test_compare_writes_a_page_with_bounds_and_a_picture(
    run: Run, words: list[str], tmp_path: Path
) -> None:
    page, picture = tmp_path / "a.html", tmp_path / "a.png"

    shown = run("sim", "compare", *words, "--bounds", "--html", str(page), "--png", str(picture))

    assert shown.code == 0, shown.err
    assert f"wrote {page}" in shown.err
    text = page.read_text(encoding="utf-8")
    assert "mine, 8 own GPUs" in text
    assert "LB-M(phi)" in text
    assert "<pre>hybrid " in text
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_run_writes_a_page_in_chinese_and_still_prints_json(
    run: Run, words: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "a.html"

    shown = run("sim", "run", *words, "--html", str(page), "--lang", "zh", "--json")

    assert shown.code == 0, shown.err
    assert shown.out.startswith('{"api_version"')
    assert "花费与承诺" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--html", "--png"])
def test_a_folder_that_is_not_there_is_said_before_anything_is_simulated(
    run: Run, words: list[str], tmp_path: Path, option: str
) -> None:
    shown = run("sim", "run", *words, option, str(tmp_path / "no" / "a"))

    assert shown.code == ExitCode.USAGE
    assert "name a file in a folder that exists" in shown.err
    assert shown.out == ""


def test_a_language_that_is_not_there_is_refused(run: Run, words: list[str]) -> None:
    shown = run("sim", "run", *words, "--lang", "fr")

    assert shown.code == ExitCode.USAGE
    assert "'fr' is not one of en, zh" in shown.err

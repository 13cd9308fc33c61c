"""The last words of a controller, for those who started it."""

from __future__ import annotations

from pathlib import Path

from hybrid.cli.controller import last_lines


def test_only_the_lines_of_this_start_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "controller.log"
    path.write_text("of an earlier run\nError: why\n")

    assert last_lines(path, len("of an earlier run\n")) == ("Error: why",)


def test_a_log_that_was_begun_anew_since_then_is_all_of_this_start(tmp_path: Path) -> None:
    path = tmp_path / "controller.log"
    path.write_text("Error: why\n")

    assert last_lines(path, 1_000_000) == ("Error: why",)

"""What a start makes of what was in force before it."""

from __future__ import annotations

import argparse

import pytest

from hybrid.app.__main__ import _mode
from hybrid.core.ports import Mode

NOW_S = 1_000.0
CLOSING = Mode(is_closing=True, close_by_s=5_000.0)


@pytest.mark.parametrize(
    ("before", "closing", "drain", "by_s"),
    [
        (Mode(), True, None, None),
        (Mode(), True, 60.0, 1_060.0),
        (CLOSING, True, None, 5_000.0),
        (CLOSING, True, 0.0, 1_000.0),
        (CLOSING, False, None, None),
        (Mode(close_by_s=9.0), True, None, None),
    ],
    ids=["new", "new-with-time", "goes-on", "hurries", "up-again", "leftover"],
)
def test_whoever_closes_after_a_crash_keeps_the_time_that_work_has(
    before: Mode, closing: bool, drain: float | None, by_s: float | None
) -> None:
    options = argparse.Namespace(closing=closing, drain=drain)

    after = _mode(before, options, now_s=NOW_S)

    assert (after.is_closing, after.close_by_s) == (closing, by_s)

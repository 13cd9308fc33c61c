"""The end of what left a job's process group."""

from __future__ import annotations

import os
import subprocess
import uuid

from hybrid.job import guard


def test_what_carries_the_mark_is_ended_and_nothing_else() -> None:
    mark = f"HYBRID_TEST_MARK={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    ours = subprocess.Popen(
        ["sleep", "60"], env={**os.environ, name: value}, start_new_session=True
    )
    longer = subprocess.Popen(["sleep", "60"], env={**os.environ, name: f"{value}0"})
    try:
        while ours.pid not in set(guard.marked(mark)):
            assert ours.poll() is None
        guard.end(mark)
        assert ours.wait(timeout=30) == -9
        assert longer.poll() is None
    finally:
        longer.kill()
        longer.wait()

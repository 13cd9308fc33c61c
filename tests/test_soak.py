"""The soak runs, and its document says what was checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_a_short_soak_prints_one_document_and_passes_no_verdict() -> None:
    """Too short to judge growth, and it says so; what it left over would be an error."""
    done = subprocess.run(
        [sys.executable, "scripts/soak", "--minutes", "0.05"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert done.returncode == 2, done.stderr
    document = json.loads(done.stdout)
    assert document["is_ok"] is None
    assert document["ticks"] > 20
    first, *_, last = document["samples"]
    assert first.keys() >= {"memory_mib", "thread_count", "fd_count", "ledger_bytes_per_event"}
    assert last["event_count"] >= first["event_count"]

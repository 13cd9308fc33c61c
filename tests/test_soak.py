"""The soak runs, and its document says what was checked."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.soak_parts.judging import Sample, checks, fd_count, own_mib

ROOT = Path(__file__).parent.parent
STEADY = Sample(
    at_s=0.0,
    tick_count=0,
    memory_mib=100.0,
    thread_count=8,
    fd_count=20,
    ledger_bytes=1_000_000,
    event_count=1_000,
    instance_count=100,
    ledger_bytes_per_event=1_000.0,
    tick_ms=0.0,
)
GROWN = {"memory_mib": 112.0, "thread_count": 12, "fd_count": 26, "ledger_bytes_per_event": 1_150.0}


def verdict(samples: list[Sample]) -> dict[str, bool]:
    return {check.name: check.is_ok for check in checks(samples, warm_instances=0)}


def test_what_stays_as_it_is_passes() -> None:
    assert verdict([STEADY] * 40) == dict.fromkeys(GROWN, True)


@pytest.mark.parametrize("name", GROWN)
def test_what_grows_after_the_warm_up_fails(name: str) -> None:
    first = getattr(STEADY, name)
    step = (GROWN[name] - first) / 30
    growing = [replace(STEADY, **{name: first + step * max(0, n - 10)}) for n in range(41)]

    assert [found for found, is_ok in verdict(growing).items() if not is_ok] == [name]


def test_what_grows_in_the_warm_up_only_passes() -> None:
    cold = replace(STEADY, memory_mib=50.0)

    assert all(verdict([cold] * 10 + [STEADY] * 30).values())


def test_too_few_samples_are_no_verdict() -> None:
    assert checks([STEADY] * 12, warm_instances=0) == []
    assert checks([STEADY] * 40, warm_instances=1_000) == []


def test_this_process_is_looked_at() -> None:
    assert own_mib() > 1
    assert fd_count() > 2


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

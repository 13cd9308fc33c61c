"""The table of `hybrid up`: what may be rented, at which price, and who says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from tests.cli.conftest import Run

HEAD = (
    "name: lab\nhead: {address: 10.0.0.5}\nproviders:\n  aws:\n    regions:\n      us-east-1:\n"
    "        image: ami-0123456789abcdef0\n"
    "        subnets: {us-east-1a: subnet-0123456789abcdef0}\n"
)
ZONE = "infra: aws/us-east-1/us-east-1a, instance_type: g5.12xlarge"


NOW_S = 1_788_500_000.0
"""A day in September 2026: listed prices grow old."""


@pytest.fixture(autouse=True)
def _it_is_september(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now_s", lambda _clock: NOW_S)


def page(run: Run, tmp_path: Path, *pools: str, budget: str = "nodes: 2") -> str:
    lines = "".join(f"    - {{{pool}}}\n" for pool in pools)
    text = f"{HEAD}clouds:\n  any_of:\n{lines}budget: {{{budget}}}\n"
    (tmp_path / "hybrid.yaml").write_text(text, encoding="utf-8")
    shown = run("up")
    assert "pass -y" in shown.err, shown.err
    return shown.out


def test_a_listed_price_comes_with_its_day(run: Run, tmp_path: Path) -> None:
    out = page(run, tmp_path, f"{ZONE}, max_nodes: 1", f"{ZONE}, use_spot: true, usd_per_hour: 2")

    listed, own = (line for line in out.splitlines() if line.startswith("aws/"))
    assert listed.endswith("list 2026-07-20         1")
    assert listed.split()[1:6] == ["g5.12xlarge", "A10G:4", "on", "demand", "$5.67/h"]
    assert own.split()[-4:] == ["$2.00/h", "you", "no", "limit"]
    assert "At worst: $11.34/h" in out


def test_a_spot_price_that_nobody_knows_says_why_and_its_limit(run: Run, tmp_path: Path) -> None:
    out = page(run, tmp_path, f"{ZONE}, use_spot: true, spot_limit_usd_per_hour: 4")

    assert "up to $4.00/h" in out
    assert "No price for clouds.any_of[0]: it costs what the spot market says" in out
    assert "At worst: $8.00/h" in out


def test_without_any_bound_the_worst_case_is_unknown(run: Run, tmp_path: Path) -> None:
    kind = "instance_type: p9.huge, accelerators: A100:8, cpus: 8, memory: 8GiB, use_spot: true"

    out = page(run, tmp_path, f"infra: aws/us-east-1/us-east-1a, {kind}")

    assert "At worst: ?, ? a day." in out


def test_an_on_demand_price_that_nobody_knows_says_why_and_the_rest_is_rented(
    run: Run, tmp_path: Path
) -> None:
    kind = "instance_type: p9.huge, accelerators: A100:8, cpus: 8, memory: 8GiB"

    out = page(run, tmp_path, f"infra: aws/us-east-1/us-east-1a, {kind}", ZONE)

    assert "No price for clouds.any_of[0]: no price known: the catalog has no p9.huge" in out
    assert "$5.67/h" in out

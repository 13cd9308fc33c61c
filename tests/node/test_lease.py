"""The lease on clocks that the test moves."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hybrid.node.lease import UNREADABLE_S, Lease


class Clocks:
    """A wall clock that can jump and a monotonic one that cannot."""

    def __init__(self) -> None:
        self.wall_s = 1_800_000_000.0
        self.monotonic_s = 50.0

    def pass_(self, duration_s: float) -> None:
        self.wall_s += duration_s
        self.monotonic_s += duration_s

    def lease(self, path: Path | None) -> Lease:
        return Lease(path, wall_s=lambda: self.wall_s, monotonic_s=lambda: self.monotonic_s)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_a_node_without_a_lease_lives_for_ever(clocks: Clocks) -> None:
    lease = clocks.lease(None)

    clocks.pass_(1e9)
    lease.renew()

    assert lease.left_s() == math.inf


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_jump_of_the_wall_clock_changes_nothing(
    clocks: Clocks, tmp_path: Path, jump_s: float
) -> None:
    path = tmp_path / "lease"
    path.write_text(str(clocks.wall_s + 100))
    lease = clocks.lease(path)

    clocks.wall_s += jump_s
    clocks.pass_(40)
    lease.renew()

    assert lease.left_s() == pytest.approx(60)


def test_a_renewal_counts_from_the_wall_clock_of_its_moment(clocks: Clocks, tmp_path: Path) -> None:
    path = tmp_path / "lease"
    path.write_text(str(clocks.wall_s + 100))
    lease = clocks.lease(path)
    clocks.wall_s += 3600

    path.write_text(str(clocks.wall_s + 200))
    lease.renew()

    assert lease.left_s() == pytest.approx(200)


@pytest.mark.parametrize("content", ["", "soon", "nan", "inf", "-inf", "1e999", "\0\0", "12 13"])
def test_a_damaged_file_leaves_the_last_lease_in_force(
    clocks: Clocks, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "lease"
    path.write_text(str(clocks.wall_s + 100))
    lease = clocks.lease(path)

    path.write_text(content)
    lease.renew()
    path.unlink()
    lease.renew()

    assert lease.left_s() == pytest.approx(100)


def test_a_lease_that_was_never_readable_ends_all_the_same(clocks: Clocks, tmp_path: Path) -> None:
    lease = clocks.lease(tmp_path / "missing")

    clocks.pass_(UNREADABLE_S + 1)
    lease.renew()

    assert lease.left_s() < 0


def test_a_lease_of_the_past_is_over_at_once(clocks: Clocks, tmp_path: Path) -> None:
    path = tmp_path / "lease"
    path.write_text(str(clocks.wall_s - 1))

    assert clocks.lease(path).left_s() < 0

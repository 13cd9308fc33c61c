"""What the configuration says of Ray, as nodes of each kind are told it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.app.translate import ray_options
from hybrid.core.models import RayHealth
from tests.settings.writing import load_text


def test_everything_that_concerns_a_node_is_told_to_own_and_rented_ones(tmp_path: Path) -> None:
    text = """
name: a
ray:
  object_store: 2GiB
  worker_ports: 30000..31999
  max_shapes: 77
  health: {initial_delay: 1s, period: 4s, timeout: 5s, failure_threshold: 6, keepalive_time: 7s,
           keepalive_timeout: 6s}
"""
    settings = load_text(tmp_path, text)

    own = ray_options(settings, is_shared=True)
    rented = ray_options(settings, is_shared=False)

    assert own == rented
    assert (rented.object_store_bytes, rented.max_shapes) == (2 * 2**30, 77)
    assert rented.worker_ports == (30_000, 31_999)
    assert rented.health == RayHealth(
        initial_delay_s=1,
        period_s=4,
        timeout_s=5,
        failure_threshold=6,
        keepalive_time_s=7,
        keepalive_timeout_s=6,
    )


@pytest.mark.parametrize(
    ("written", "is_shared", "store"),
    [
        ("", True, 80_000_000),
        ("", False, None),
        ("ray: {object_store: auto}", True, None),
        ("ray: {object_store: auto}", False, None),
        ("ray: {object_store: 100MB}", True, 100_000_000),
        ("ray: {object_store: 100MB}", False, 100_000_000),
    ],
)
def test_a_machine_of_its_own_is_given_a_small_store_only_when_somebody_says_so(
    tmp_path: Path, written: str, is_shared: bool, store: int | None
) -> None:
    settings = load_text(tmp_path, f"name: a\n{written}\n")

    assert ray_options(settings, is_shared=is_shared).object_store_bytes == store

"""The bounds against exact optima of 120 random instances: never on the wrong side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import pytest

from hybrid.sim.bounds import feasible, migratable, rigid
from tests.sim.bounds.exact import STEP_S, instance, migratable_gpu_s, rigid_gpu_s

SEEDS = range(60)


def print_tightness(name: str, pairs: Sequence[tuple[float, float]]) -> None:
    """Print how near a bound came, over the instances in which anything had to be rented."""
    ratios = [bound / exact for bound, exact in pairs if exact > 1e-6]
    print(  # noqa: T201 (pytest -s shows it)
        f"\n{name}: {len(pairs)} instances, {len(ratios)} with rent; bound / optimum: "
        f"median {statistics.median(ratios):.3f}, min {min(ratios):.3f}, max {max(ratios):.3f}"
    )


@pytest.mark.slow
def test_no_bound_for_uninterrupted_work_is_on_the_wrong_side_of_the_optimum() -> None:
    found: dict[str, list[tuple[float, float]]] = {"LB-N": [], "LB-M": [], "UB": []}
    for seed in SEEDS:
        given = instance(seed)
        work, gpus, wait_s = given.work, given.gpus, given.max_wait_s

        exact = rigid_gpu_s(given)
        lower = rigid.least_rented_gpu_s(work, gpus, max_wait_s=wait_s, step_s=STEP_S)
        poured = migratable.least_rented_gpu_s(work, gpus, max_wait_s=wait_s)
        upper = feasible.cheapest_plan(
            work, gpus, max_wait_s=wait_s, step_s=STEP_S, slot_s=STEP_S
        ).rented_gpu_s

        tolerance = 1e-6 * max(1.0, exact)
        assert poured <= lower <= exact + tolerance, seed
        assert upper >= exact - tolerance, seed
        for name, value in (("LB-N", lower), ("LB-M", poured), ("UB", upper)):
            found[name].append((value, exact))
    for name, pairs in found.items():
        print_tightness(f"{name}, no job interrupted", pairs)
    assert statistics.median([b / e for b, e in found["LB-N"] if e > 1e-6]) > 0.8
    assert statistics.median([b / e for b, e in found["UB"] if e > 1e-6]) < 1.1


@pytest.mark.slow
@pytest.mark.parametrize("late_share", [0.0, 0.25])
def test_no_bound_for_work_that_moves_is_above_the_optimum(late_share: float) -> None:
    pairs = []
    for seed in SEEDS:
        given = instance(seed)

        exact = migratable_gpu_s(given, late_share)
        lower = migratable.least_rented_gpu_s(
            given.work, given.gpus, max_wait_s=given.max_wait_s, late_share=late_share
        )

        assert lower <= exact + 1e-6 * max(1.0, exact), seed
        pairs.append((lower, exact))
    print_tightness(f"LB-M, jobs move, late share {late_share}", pairs)


@pytest.mark.slow
def test_without_late_share_it_is_no_bound_for_a_policy_that_may_use_one() -> None:
    above = sum(
        migratable.least_rented_gpu_s(given.work, given.gpus, max_wait_s=given.max_wait_s)
        > migratable_gpu_s(given, 0.5) + 1.0
        for given in map(instance, range(20))
    )

    assert above > 0

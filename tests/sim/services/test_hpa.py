"""The baselines follow the rules of Kubernetes and KEDA, step by step."""

from __future__ import annotations

import pytest

from hybrid.sim.services.hpa import Hpa, HpaTuning, Keda, hpa_grid, keda_grid
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.world import Orders, Seen

PARAMS = ServiceSimParams(home=10, replica_rps=1.0, borrowable=0)


def seen(arrived: int, *, now_s: float = 30.0, **changes: float) -> Seen:
    values: dict[str, float] = {"served": min(arrived, 100), "backlog": 0, "rented": 0}
    values |= {"booting": 0} | changes
    return Seen(
        now_s=now_s,
        arrived=arrived,
        served=values["served"],
        backlog=values["backlog"],
        home=10,
        borrowed=0,
        borrowing=0,
        rented=int(values["rented"]),
        booting=int(values["booting"]),
    )


@pytest.mark.parametrize(
    ("arrived", "rents"),
    [
        pytest.param(50, 0, id="at-target"),
        pytest.param(55, 0, id="within-tolerance"),
        pytest.param(56, 2, id="just-beyond-tolerance"),  # 5.6 replicas at 50 % are 11.2
        pytest.param(100, 10, id="twice-the-target"),
        pytest.param(200, 10, id="no-more-than-twice-as-many-at-a-time"),
        pytest.param(10, 0, id="never-below-home"),
    ],
)
def test_the_hpa_wants_use_over_target(arrived: int, rents: int) -> None:
    hpa = Hpa(PARAMS, HpaTuning(0.5, "rate", mean_s=10.0))

    assert hpa.decide(seen(arrived)) == Orders(rents=rents)


def test_pods_that_boot_count_as_idle_when_it_scales_up() -> None:
    hpa = Hpa(PARAMS, HpaTuning(0.5, "rate", mean_s=10.0))

    assert hpa.decide(seen(100, booting=10)) == Orders()


def test_it_scales_down_only_after_the_stabilisation_window() -> None:
    hpa = Hpa(PARAMS, HpaTuning(0.5, "rate", mean_s=10.0, hold_s=300.0))
    hpa.decide(seen(100, now_s=10.0, rented=10))

    changes = [hpa.decide(seen(10, now_s=20.0 + 10 * n, rented=10)).rents for n in range(31)]

    assert changes[:29] == [0] * 29
    assert changes[29] == -10


def test_use_that_is_measured_on_replicas_cannot_pass_one() -> None:
    busy = Hpa(PARAMS, HpaTuning(0.8, "busy", mean_s=10.0))
    rate = Hpa(PARAMS, HpaTuning(0.8, "rate", mean_s=10.0))

    assert busy.decide(seen(400)).rents == 3  # 10 / 0.8
    assert rate.decide(seen(400)).rents == 10


def test_keda_asks_every_thirty_seconds_and_counts_the_queue() -> None:
    keda = Keda(PARAMS, HpaTuning(1.0, "rate", mean_s=10.0))

    assert keda.decide(seen(50, now_s=10.0, backlog=500)) == Orders()
    assert keda.decide(seen(50, now_s=30.0, backlog=150)) == Orders(rents=5)


def test_with_loans_only_what_cannot_be_borrowed_is_rented() -> None:
    params = ServiceSimParams(home=10, replica_rps=1.0, borrowable=4)
    hpa = Hpa(params, HpaTuning(0.5, "rate", mean_s=10.0), borrows=True)

    assert hpa.decide(seen(80)) == Orders(loans=4, rents=2)


def test_the_grids_have_no_point_twice() -> None:
    assert len(set(hpa_grid())) == len(list(hpa_grid())) == 120
    assert len(set(keda_grid())) == len(list(keda_grid())) == 40

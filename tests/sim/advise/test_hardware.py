"""What a GPU of one's own costs, by hand."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from hybrid.sim.advise.hardware import ASSUMPTIONS, OwnHardware

ROUND = OwnHardware(
    usd_per_gpu=20_000,
    extras_ratio=0.5,
    years=5,
    interest_ratio=0,
    upkeep_ratio=0.1,
    watts_per_gpu=1_000,
    pue=1.5,
    usd_per_kwh=0.1,
    usd_per_kw_month=100,
    usd_per_admin_year=100_000,
    gpus_per_admin=100,
)


def test_each_part_is_what_one_reckons_by_hand() -> None:
    parts = ROUND.parts()

    assert parts == {
        "capital": 6_000.0,  # 30,000 over five years
        "upkeep": 3_000.0,  # a tenth of 30,000
        "power": pytest.approx(1_314.0),  # 1 kW x 1.5 x 8,760 h x $0.1
        "space": 1_200.0,  # 1 kW x $100 x 12
        "staff": 1_000.0,  # a hundredth of a person
    }
    assert ROUND.usd_per_gpu_year == pytest.approx(12_514.0)
    assert ROUND.usd_per_gpu_hour == pytest.approx(12_514.0 / 8_760)


def test_interest_is_that_of_an_annuity() -> None:
    lent = ROUND.model_copy(update={"interest_ratio": 0.1, "years": 2.0})

    # 30,000 paid back in two payments at 10 %: 30,000 x 0.1 / (1 - 1 / 1.21).
    paid = lent.parts()["capital"]
    assert paid == pytest.approx(17_285.71, abs=0.01)
    assert (30_000 * 1.1 - paid) * 1.1 == pytest.approx(paid)


@pytest.mark.parametrize(
    "change",
    [
        {"usd_per_gpu": 0},
        {"usd_per_gpu": math.nan},
        {"usd_per_gpu": math.inf},
        {"years": 0},
        {"watts_per_gpu": -1},
        {"pue": 0.9},
        {"usd_per_kwh": 0},
        {"gpus_per_admin": 0},
    ],
)
def test_prices_that_make_own_hardware_free_or_absurd_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        OwnHardware(**change)


def test_every_number_has_a_source() -> None:
    assert list(ASSUMPTIONS) == list(OwnHardware.model_fields)
    assert all(about.source for about in ASSUMPTIONS.values())

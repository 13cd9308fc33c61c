"""Booked money in few pieces: what a tick adds up is the same, however long the month was."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from hybrid.adapters.ledger import SqlLedger
from hybrid.core.cost import commitment_of, day_start_s, month_start_s, payment, spent_usd
from hybrid.core.models import Caps
from tests.adapters.ledger.builders import make_instance, terminated

HOUR_S = 3_600.0
NOW_S = datetime(2025, 11, 28, 13, tzinfo=UTC).timestamp()


def book(ledger: SqlLedger, count: int, *, seed: int = 1) -> None:
    """Book the lives of instances, over five weeks and some midnights."""
    rng = random.Random(seed)
    for number in range(count):
        created_at_s = NOW_S - rng.uniform(0.0, 36 * 24 * HOUR_S) - 12 * HOUR_S
        intent = make_instance(f"i-{number}", created_at_s=created_at_s)
        ledger.request(intent, caps=Caps(), exit_s=0.0, now_s=created_at_s)
        ledger.save(terminated(intent, now_s=created_at_s + rng.uniform(0.1, 12.0) * HOUR_S))


@pytest.mark.parametrize("later_s", [0.0, 60.0, 10.9 * HOUR_S])
def test_payments_add_up_to_the_spends(ledger: SqlLedger, later_s: float) -> None:
    book(ledger, 60)
    now_s = NOW_S + later_s

    payments = ledger.payments(now_s=now_s)

    one_by_one = [payment(s) for s in ledger.spends(since_s=month_start_s(now_s))]
    for since_s in (day_start_s(now_s), month_start_s(now_s)):
        expected = spent_usd(one_by_one, since_s=since_s)
        assert spent_usd(payments, since_s=since_s) == pytest.approx(expected)


def test_a_thousand_lives_of_one_day_are_one_piece(ledger: SqlLedger) -> None:
    for number in range(40):
        intent = make_instance(f"i-{number}", created_at_s=NOW_S - HOUR_S)
        ledger.request(intent, caps=Caps(), exit_s=0.0, now_s=NOW_S - HOUR_S)
        ledger.save(terminated(intent, now_s=NOW_S - number))

    payments = ledger.payments(now_s=NOW_S)

    assert len(payments) == 1
    spent = commitment_of((), payments, now_s=NOW_S, exit_s=0.0).day_usd
    assert spent == pytest.approx(sum(s.usd for s in ledger.spends()))


def test_nothing_booked_is_no_payment(ledger: SqlLedger) -> None:
    assert ledger.payments(now_s=NOW_S) == ()

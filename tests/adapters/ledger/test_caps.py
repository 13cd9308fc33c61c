"""Tests that a cap holds at every instant: reservations, money of the day, many threads."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from hybrid.adapters.ledger import SqlLedger
from hybrid.core.cost import commitment, month_start_s
from hybrid.core.errors import CapExceededError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Caps
from tests.adapters.ledger.builders import (
    EXIT_S,
    NOW_S,
    after,
    make_event,
    make_instance,
    make_offer,
    terminated,
)

HOUR_S = 3600.0


def at(text: str) -> float:
    """Return an instant from ISO text, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "caps",
    [
        pytest.param(Caps(node_count=2), id="nodes"),
        pytest.param(Caps(gpu_count=11), id="gpus"),
        pytest.param(Caps(usd_per_hour=5.9), id="hour"),
        # Each $2 instance keeps $1 to come home within half an hour.
        pytest.param(Caps(usd_per_day=2.5), id="day"),
        pytest.param(Caps(usd_per_month=2.5), id="month"),
    ],
)
def test_request_stops_at_each_cap_and_writes_nothing(ledger: SqlLedger, caps: Caps) -> None:
    for number in (1, 2):
        intent = make_instance(f"i-{number}")
        ledger.request(intent, caps=caps, exit_s=EXIT_S, now_s=NOW_S)
    before = ledger.events()
    [(name, limit)] = caps.model_dump(exclude_none=True).items()

    with pytest.raises(CapExceededError, match=rf"cap {name} is {limit}: used .* asked") as info:
        ledger.request(make_instance("i-3"), caps=caps, exit_s=EXIT_S, now_s=NOW_S)

    assert info.value.cap == name
    assert ledger.instance("i-3") is None
    assert ledger.events() == before


def test_request_within_the_caps_goes_on_after_a_refusal(ledger: SqlLedger) -> None:
    caps = Caps(gpu_count=4)
    ledger.request(make_instance("i-1"), caps=caps, exit_s=EXIT_S, now_s=NOW_S)
    with pytest.raises(CapExceededError):
        ledger.request(make_instance("i-2"), caps=caps, exit_s=EXIT_S, now_s=NOW_S)

    cpu_only = make_instance("i-3", offer=make_offer(gpu_count=0))
    ledger.request(cpu_only, caps=caps, exit_s=EXIT_S, now_s=NOW_S)

    assert len(ledger.live_instances()) == 2


@pytest.mark.parametrize("end", [Fact.LAUNCH_REFUSED, Fact.GONE])
def test_an_end_frees_the_reservation(ledger: SqlLedger, end: Fact) -> None:
    caps = Caps(node_count=1)
    first = make_instance("i-1")
    ledger.request(first, caps=caps, exit_s=EXIT_S, now_s=NOW_S)

    ledger.save(after(first, end, now_s=NOW_S + 1))

    ledger.request(make_instance("i-2"), caps=caps, exit_s=EXIT_S, now_s=NOW_S + 1)


def test_a_lost_instance_keeps_its_reservation(ledger: SqlLedger) -> None:
    caps = Caps(node_count=1)
    first = make_instance("i-1")
    ledger.request(first, caps=caps, exit_s=EXIT_S, now_s=NOW_S)

    ledger.save(after(first, Fact.LAUNCH_OVERDUE, now_s=NOW_S + 1))

    with pytest.raises(CapExceededError):
        ledger.request(make_instance("i-2"), caps=caps, exit_s=EXIT_S, now_s=NOW_S + 1)


def test_the_day_cap_counts_booked_and_running_money(ledger: SqlLedger) -> None:
    # $2 booked, $2 running, $1 to bring the running one home, $1 for the new one: $6.
    start_s = at("2025-11-30T10:00:00")
    first, second = (make_instance(f"i-{n}", created_at_s=start_s) for n in (1, 2))
    for intent in (first, second):
        ledger.request(intent, caps=Caps(), exit_s=EXIT_S, now_s=start_s)
    now_s = start_s + HOUR_S
    ledger.save(terminated(first, now_s=now_s))
    third = make_instance("i-3", created_at_s=now_s)

    with pytest.raises(CapExceededError, match=r"usd_per_day is 5.99: used 5, 1 of it kept"):
        ledger.request(third, caps=Caps(usd_per_day=5.99), exit_s=EXIT_S, now_s=now_s)

    ledger.request(third, caps=Caps(usd_per_day=6.0), exit_s=EXIT_S, now_s=now_s)


def test_yesterdays_part_of_a_night_leaves_the_day_cap_but_not_the_months(
    ledger: SqlLedger,
) -> None:
    # 22:00 to 01:00 at $2: $4 yesterday, $2 today; $1 of reserve for the new one.
    first = make_instance("i-1", created_at_s=at("2025-11-29T22:00:00"))
    ledger.request(first, caps=Caps(), exit_s=EXIT_S, now_s=first.created_at_s)
    ledger.save(terminated(first, now_s=at("2025-11-30T01:00:00")))
    now_s = at("2025-11-30T09:00:00")
    second = make_instance("i-2", created_at_s=now_s)

    with pytest.raises(CapExceededError, match=r"usd_per_month is 6.9: used 6"):
        ledger.request(second, caps=Caps(usd_per_month=6.9), exit_s=EXIT_S, now_s=now_s)

    ledger.request(
        second, caps=Caps(usd_per_day=3.0, usd_per_month=7.0), exit_s=EXIT_S, now_s=now_s
    )


def test_a_new_month_begins_with_the_new_months_part_only(ledger: SqlLedger) -> None:
    first = make_instance("i-1", created_at_s=at("2025-11-30T22:00:00"))
    ledger.request(first, caps=Caps(), exit_s=EXIT_S, now_s=first.created_at_s)
    ledger.save(terminated(first, now_s=at("2025-12-01T01:00:00")))
    now_s = at("2025-12-01T02:00:00")
    second = make_instance("i-2", created_at_s=now_s)

    with pytest.raises(CapExceededError, match=r"usd_per_month is 2.9: used 2, asked 1"):
        ledger.request(second, caps=Caps(usd_per_month=2.9), exit_s=EXIT_S, now_s=now_s)

    ledger.request(second, caps=Caps(usd_per_month=3.0), exit_s=EXIT_S, now_s=now_s)


def test_the_views_commitment_is_what_the_caps_are_held_against(ledger: SqlLedger) -> None:
    for number in range(6):
        created_at_s = at("2025-11-28T20:00:00") + number * 7 * HOUR_S
        intent = make_instance(f"i-{number}", created_at_s=created_at_s)
        ledger.request(intent, caps=Caps(), exit_s=EXIT_S, now_s=created_at_s)
        if number % 2:
            ledger.save(terminated(intent, now_s=created_at_s + 5.5 * HOUR_S))
    now_s = at("2025-11-30T23:30:00")

    seen = commitment(
        ledger.live_instances(),
        ledger.spends(since_s=month_start_s(now_s)),
        now_s=now_s,
        exit_s=EXIT_S,
    )

    for cap, used, asked in (
        ("usd_per_day", seen.day_usd + seen.day_exit_usd, 1.0),
        ("usd_per_month", seen.month_usd + seen.day_exit_usd, 1.0),
        ("usd_per_hour", seen.usd_per_hour, 2.0),
        ("node_count", seen.node_count, 1),
    ):
        too_low = Caps.model_validate({cap: used + asked - (1 if cap == "node_count" else 0.01)})
        with pytest.raises(CapExceededError) as info:
            ledger.request(make_instance("i-x"), caps=too_low, exit_s=EXIT_S, now_s=now_s)
        assert f"used {used:.6g}" in str(info.value)


@pytest.mark.slow
def test_1000_concurrent_requests_never_pass_a_cap_at_any_instant(ledger: SqlLedger) -> None:
    caps = Caps(node_count=20, gpu_count=70, usd_per_hour=39.0)

    def try_one(number: int) -> int:
        intent = make_instance(f"i-{number}", offer=make_offer(gpu_count=1 + number % 8))
        try:
            ledger.request(intent, caps=caps, exit_s=EXIT_S, now_s=NOW_S)
        except CapExceededError:
            return 0
        if number % 3:
            gone = make_event("instance_ended", subject=intent.instance_id)
            ledger.save(terminated(intent, now_s=NOW_S), gone)
        return 1

    with ThreadPoolExecutor(max_workers=64) as pool:
        granted_count = sum(pool.map(try_one, range(1000)))

    # History is in the order of commits, so each prefix of it is one instant.
    sign = {"instance_requested": 1, "instance_ended": -1}
    lines = ledger.events(limit=10_000)
    gpus = {line.subject: line.facts.get("gpu_count") for line in reversed(lines)}
    nodes_over_time = list(itertools.accumulate(sign[line.kind] for line in lines))
    gpus_over_time = list(
        itertools.accumulate(sign[line.kind] * int(str(gpus[line.subject])) for line in lines)
    )
    assert max(nodes_over_time) <= 19  # $39 an hour at $2 each
    assert max(gpus_over_time) <= 70
    assert granted_count == sum(line.kind == "instance_requested" for line in lines)
    assert nodes_over_time[-1] == len(ledger.live_instances())

"""Tests of what the ledger keeps: instances, history, switches, jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from hybrid.adapters.ledger import SqlLedger, open_ledger
from hybrid.core.errors import LedgerError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Caps, Event, InstanceState, JobState, OfferFailure, Reason
from hybrid.core.ports import Mode
from tests.adapters.ledger.builders import (
    EXIT_S,
    NOW_S,
    after,
    make_event,
    make_instance,
    make_job,
    terminated,
)

if TYPE_CHECKING:
    from hybrid.core.models import Instance
    from hybrid.core.ports import Ledger

HOUR_S = 3600.0


def request(ledger: SqlLedger, instance: Instance) -> Instance:
    ledger.request(instance, caps=Caps(), exit_s=EXIT_S, now_s=NOW_S)
    return instance


def test_sql_ledger_is_a_ledger(ledger: SqlLedger) -> None:
    as_port: Ledger = ledger  # the type checker compares every signature

    assert as_port.cluster_id.startswith("c-")


# --- instances ----------------------------------------------------------------------------


def test_request_stores_the_intent_and_one_line_of_history(ledger: SqlLedger) -> None:
    intent = request(ledger, make_instance())

    assert ledger.live_instances() == (intent,)
    assert ledger.instance("i-1") == intent
    [line] = ledger.events()
    assert (line.kind, line.subject, line.epoch) == ("instance_requested", "i-1", ledger.epoch)
    assert line.facts["offer_id"] == "local///g4/on_demand"
    assert line.facts["reason_wait_s"] == 31.5


def test_request_refuses_an_id_that_was_used_before(ledger: SqlLedger) -> None:
    intent = request(ledger, make_instance())

    with pytest.raises(LedgerError, match="requested before"):
        request(ledger, intent)

    assert len(ledger.events()) == 1


def test_request_refuses_an_instance_that_is_past_its_intent(ledger: SqlLedger) -> None:
    booting = after(make_instance(), Fact.LAUNCH_ACCEPTED, now_s=NOW_S)

    with pytest.raises(LedgerError, match="its state is booting"):
        request(ledger, booting)


def test_save_stores_the_change_and_its_events_together(ledger: SqlLedger) -> None:
    intent = request(ledger, make_instance())
    booting = after(intent, Fact.LAUNCH_ACCEPTED, now_s=NOW_S + 1)

    ledger.save(booting, make_event("launch_accepted", subject="i-1"), make_event("other"))

    assert ledger.instance("i-1") == booting
    assert [e.kind for e in ledger.events()] == ["instance_requested", "launch_accepted", "other"]


def test_save_refuses_an_instance_without_an_intent(ledger: SqlLedger) -> None:
    with pytest.raises(LedgerError, match="never requested"):
        ledger.save(make_instance(), make_event())

    assert ledger.events() == ()


@pytest.mark.parametrize("end", [Fact.GONE, Fact.LAUNCH_REFUSED])
def test_an_ended_instance_is_never_changed_again(ledger: SqlLedger, end: Fact) -> None:
    intent = request(ledger, make_instance())
    ended = after(intent, end, now_s=NOW_S + 10)
    ledger.save(ended)

    with pytest.raises(LedgerError, match="never changes again"):
        ledger.save(intent, make_event())
    with pytest.raises(LedgerError, match="never changes again"):
        ledger.save(ended, make_event())

    assert ledger.instance("i-1") == ended
    assert ledger.live_instances() == ()
    assert len(ledger.events()) == 1


def test_save_of_an_end_books_the_spend(ledger: SqlLedger) -> None:
    intent = request(ledger, make_instance())

    ledger.save(terminated(intent, now_s=NOW_S + HOUR_S))

    [spend] = ledger.spends()
    assert (spend.instance_id, spend.from_s, spend.to_s) == ("i-1", NOW_S, NOW_S + HOUR_S)
    assert spend.usd == pytest.approx(2.0)


def test_save_of_a_refused_launch_books_nothing(ledger: SqlLedger) -> None:
    intent = request(ledger, make_instance())

    ledger.save(after(intent, Fact.LAUNCH_REFUSED, now_s=NOW_S + HOUR_S))

    assert ledger.spends() == ()


def test_spends_are_those_that_ended_after_an_instant(ledger: SqlLedger) -> None:
    for number in (1, 2, 3):
        intent = request(ledger, make_instance(f"i-{number}"))
        ledger.save(terminated(intent, now_s=NOW_S + number))

    assert [s.instance_id for s in ledger.spends(since_s=NOW_S + 1)] == ["i-2", "i-3"]


def test_live_instances_are_oldest_first_and_instances_newest_first(ledger: SqlLedger) -> None:
    for number in (2, 3, 1):
        request(ledger, make_instance(f"i-{number}", created_at_s=NOW_S + number))
    ended = ledger.instance("i-3")
    assert ended is not None
    ledger.save(terminated(ended, now_s=NOW_S + 9))

    assert [i.instance_id for i in ledger.live_instances()] == ["i-1", "i-2"]
    assert [i.instance_id for i in ledger.instances()] == ["i-3", "i-2", "i-1"]
    assert [i.instance_id for i in ledger.instances(limit=1)] == ["i-3"]


def test_instance_is_none_when_unknown(ledger: SqlLedger) -> None:
    assert ledger.instance("i-unknown") is None


def test_instance_survives_infinite_facts_and_broken_text(ledger: SqlLedger) -> None:
    # Either of them, stored carelessly, makes the row unreadable for ever.
    reason = Reason(code="queue_wait", message="m", facts={"wait_s": math.inf, "n": 1})
    odd = make_instance().model_copy(
        update={"reason": reason, "problem": "tail of a log \udc80 \x00 é 中"}
    )

    request(ledger, odd)

    [found] = ledger.live_instances()
    assert found.reason == reason
    assert found.problem == "tail of a log ? \x00 é 中"


def test_mark_joined_is_true_once(ledger: SqlLedger) -> None:
    request(ledger, make_instance())

    assert ledger.mark_joined("i-1", now_s=NOW_S) is True
    assert ledger.mark_joined("i-1", now_s=NOW_S + 1) is False


def test_mark_joined_refuses_an_unknown_instance(ledger: SqlLedger) -> None:
    with pytest.raises(LedgerError, match="'i-9' is unknown"):
        ledger.mark_joined("i-9", now_s=NOW_S)


# --- history ------------------------------------------------------------------------------


def test_events_get_numbers_in_order_and_the_writers_epoch(ledger: SqlLedger) -> None:
    ledger.append(*(make_event(f"kind_{n}") for n in range(5)))

    lines = ledger.events()

    assert [line.kind for line in lines] == [f"kind_{n}" for n in range(5)]
    assert [line.seq for line in lines] == sorted({line.seq for line in lines})
    assert {line.epoch for line in lines} == {ledger.epoch}


def test_events_without_a_start_are_the_last_ones(ledger: SqlLedger) -> None:
    ledger.append(*(make_event(f"kind_{n}") for n in range(5)))

    assert [line.kind for line in ledger.events(limit=2)] == ["kind_3", "kind_4"]


def test_events_after_a_number_are_the_next_ones(ledger: SqlLedger) -> None:
    ledger.append(*(make_event(f"kind_{n}") for n in range(5)))
    second = ledger.events()[1].seq

    assert [e.kind for e in ledger.events(after_seq=second, limit=2)] == ["kind_2", "kind_3"]
    assert ledger.events(after_seq=10**12) == ()


def test_events_of_a_subject(ledger: SqlLedger) -> None:
    ledger.append(make_event("a", subject="i-1"), make_event("b"), make_event("c", subject="i-1"))

    assert [line.kind for line in ledger.events(subject="i-1")] == ["a", "c"]


def test_event_keeps_its_facts_whatever_they_are(ledger: SqlLedger) -> None:
    facts = {"list": [1, 2], "map": {"a": None}, "text": "中", "odd": NOW_S, "set": {1}}

    ledger.append(Event(at_s=NOW_S, epoch=99, kind="k", message="m", facts=facts))

    [line] = ledger.events()
    assert line.message == "m"
    assert line.facts == {**facts, "set": [1]}


def test_append_of_nothing_writes_nothing(ledger: SqlLedger) -> None:
    ledger.append()

    assert ledger.events() == ()


# --- switches and back-off ----------------------------------------------------------------


def test_mode_is_all_off_until_it_is_set(ledger: SqlLedger, url: str) -> None:
    assert ledger.mode() == Mode()

    ledger.set_mode(Mode(is_out_paused=True, owner="ann"))
    ledger.set_mode(Mode(is_closing=True, close_by_s=NOW_S, owner="bob"))

    again = open_ledger(url)
    assert again.mode() == Mode(is_closing=True, close_by_s=NOW_S, owner="bob")
    again.close()


def test_failures_are_replaced_and_cleared_by_offer(ledger: SqlLedger) -> None:
    first = OfferFailure(key="a", failure_count=1, until_s=1.0, error="E", message="m")
    second = first.model_copy(update={"failure_count": 2})
    other = first.model_copy(update={"key": "b"})

    ledger.save_failure(first)
    ledger.save_failure(other)
    ledger.save_failure(second)

    assert ledger.failures() == (second, other)
    ledger.clear_failure("a")
    ledger.clear_failure("never-failed")
    assert ledger.failures() == (other,)


# --- jobs ---------------------------------------------------------------------------------


def test_save_job_inserts_replaces_and_adds_events(ledger: SqlLedger) -> None:
    job = make_job()
    ledger.save_job(job, make_event("job_queued", subject="j-1"))
    ended = job.model_copy(update={"state": JobState.SUCCEEDED, "ended_at_s": NOW_S + 1})

    ledger.save_job(ended, make_event("job_ended", subject="j-1"))

    assert ledger.job("j-1") == ended
    assert ledger.jobs() == (ended,)
    assert [line.kind for line in ledger.events(subject="j-1")] == ["job_queued", "job_ended"]


def test_jobs_are_newest_first_and_live_ones_oldest_first(ledger: SqlLedger) -> None:
    for number, state in enumerate(JobState):
        ledger.save_job(make_job(f"j-{number}", state=state, created_at_s=NOW_S + number))

    assert [job.job_id for job in ledger.jobs(limit=2)] == ["j-5", "j-4"]
    live = ledger.jobs(is_live_only=True)
    assert [job.state for job in live] == [JobState.QUEUED, JobState.SUBMITTED, JobState.RUNNING]
    assert ledger.jobs(is_live_only=True, limit=1) == live[:1]


def test_job_is_none_when_unknown(ledger: SqlLedger) -> None:
    assert ledger.job("j-unknown") is None


# --- opening and closing ------------------------------------------------------------------


def test_everything_is_there_after_reopening(ledger: SqlLedger, url: str) -> None:
    intent = request(ledger, make_instance())
    ledger.save_job(make_job())
    ledger.close()

    again = open_ledger(url)

    assert again.cluster_id == ledger.cluster_id
    assert again.live_instances() == (intent,)
    assert again.jobs() == (make_job(),)
    assert again.epoch == 0
    again.close()


def test_a_closed_ledger_says_so(ledger: SqlLedger) -> None:
    ledger.close()

    with pytest.raises(LedgerError, match="is closed"):
        ledger.mode()
    with pytest.raises(LedgerError, match="is closed"):
        ledger.append(make_event())


def test_every_state_is_live_or_ended(ledger: SqlLedger) -> None:
    for state in InstanceState:
        intent = request(ledger, make_instance(f"i-{state}"))
        ledger.save(intent.model_copy(update={"state": state}))

    live = {instance.state for instance in ledger.live_instances()}

    assert set(InstanceState) - live == {InstanceState.TERMINATED, InstanceState.FAILED}


def test_job_counts_are_by_state(ledger: SqlLedger) -> None:
    for number, state in enumerate((JobState.QUEUED, JobState.QUEUED, JobState.FAILED)):
        ledger.save_job(make_job(f"j-{number}", state=state))

    assert ledger.job_counts() == {JobState.QUEUED: 2, JobState.FAILED: 1}

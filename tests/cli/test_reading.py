"""The commands that read, in a pipe: what a person and what a program gets."""

from __future__ import annotations

import json

import httpx
import pytest
from pydantic import BaseModel

from hybrid.cli import words
from hybrid.cli.events import _line, _row
from hybrid.cli.status import _timeless
from hybrid.core.errors import LedgerError
from hybrid.core.models import Event, JobSpec, Reason
from hybrid.core.policy.plan import Finding
from hybrid.core.ports import Mode
from hybrid.core.views import (
    CostView,
    DemandView,
    EventsView,
    JobsView,
    NodesView,
    PlanView,
    StatusView,
)
from tests.api import canned
from tests.cli.conftest import Lab, Run
from tests.running import TOKEN

JSON_COMMANDS: dict[str, type[BaseModel]] = {
    "status": StatusView,
    "nodes": NodesView,
    "plan": PlanView,
    "jobs": JobsView,
    "events": EventsView,
    "cost": CostView,
}


@pytest.mark.parametrize("command", JSON_COMMANDS)
def test_json_is_exactly_the_apis_answer(lab: Lab, run: Run, command: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"{lab.server.url}/api/v1/{command}"

    shown = run(command, "--json")

    assert shown.out.encode() == httpx.get(url, headers=headers).content + b"\n"
    assert type(JSON_COMMANDS[command].model_validate_json(shown.out)) is JSON_COMMANDS[command]
    assert (shown.code, shown.err) == (0, "")


@pytest.mark.parametrize("words", [["status"], ["nodes"], ["plan"]])
def test_the_quick_way_and_the_usual_way_print_the_same(
    lab: Lab, run: Run, words: list[str]
) -> None:
    quick = run(*words, "--json")
    usual = run("--cluster", "lab", *words, "--json", "--cluster", "lab")

    assert quick == usual


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_cluster_may_be_named_before_or_after_the_command(
    lab: Lab, run: Run, place: str
) -> None:
    words = ["-c", "nope", "jobs"] if place == "before" else ["jobs", "-c", "nope"]

    assert "'nope' is not running" in run(*words).err


def test_status_answers_the_questions_of_a_person(lab: Lab, run: Run) -> None:
    page = run("status").out

    assert "Cluster lab: ready, up 2h00m" in page
    assert "$2.40/h now of $10.00/h, today $1.81 of $20.00, this month $31.50 (no cap)" in page
    assert "onprem-1" in page
    assert "never possible as configured" in page
    assert "provider:local cannot be seen" in page
    assert "! provider local cannot be read" in page
    assert "Jobs:  1 running, 1 failed" in page


def test_status_shows_unknown_as_unknown(lab: Lab, run: Run) -> None:
    joining = next(line for line in run("status").out.splitlines() if "joining" in line)

    assert "?/4" in joining
    assert "0/4" not in joining


def test_status_says_what_is_paused_and_by_whom(lab: Lab, run: Run) -> None:
    lab.service.mode = Mode(is_out_paused=True, is_in_paused=True, owner="ada@gpu-1")

    page = run("status").out

    assert "Launches are paused by ada@gpu-1; `hybrid resume out` goes on." in page
    assert "Scale-in is paused by ada@gpu-1" in page


def test_status_while_closing_names_the_phase(lab: Lab, run: Run) -> None:
    lab.service.state, lab.service.phase = "closing", "returning 1 instance"

    assert "closing (returning 1 instance)" in run("status").out


def test_five_hundred_nodes_are_five_hundred_lines(lab: Lab, run: Run) -> None:
    lab.service.cloud_node_count = 497

    lines = run("nodes").out.splitlines()

    assert len(lines) == 501
    assert len({line.split()[0] for line in lines}) == 501


def test_a_pipe_gets_no_colour_no_boxes_and_no_cut_lines(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 3000
    node = canned.nodes()[0].model_copy(update={"name": long, "why": f"because {long}"})
    monkeypatch.setattr(canned, "nodes", lambda _count=1: (node,))

    page = run("nodes").out

    assert "\x1b" not in page
    assert not set("│─┌┐└┘━┃") & set(page)
    assert page.count(long) == 2
    assert not any(line.endswith(" ") for line in page.splitlines())


def test_names_with_markup_or_escapes_are_shown_literally(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = canned.nodes()[0].model_copy(
        update={"name": "[red]x[/red]", "why": "\x1b[2Jgone :smile:"}
    )
    monkeypatch.setattr(canned, "nodes", lambda _count=1: (node,))

    page = run("nodes").out

    assert "[red]x[/red]" in page
    assert "\\x1b[2Jgone :smile:" in page


def test_columns_line_up_with_wide_characters(lab: Lab, run: Run) -> None:
    header, _, wide, *_ = run("jobs").out.splitlines()
    before_state = header[: header.index("STATE")]

    assert "\u8bad\u7ec3" in wide
    assert wide.index(" failed") + 1 == len(before_state) - 2  # two characters are two cells wide


def test_plan_says_when_there_is_none_yet(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canned, "plan", PlanView)

    assert "No decision yet" in run("plan").out


def test_plan_shows_actions_with_price_and_reason(lab: Lab, run: Run) -> None:
    page = run("plan").out

    launch = next(line for line in page.splitlines() if line.startswith("launch"))
    assert "$2.40/h" in launch
    assert "longer than the limit of 5m" in launch


def test_status_of_an_empty_cluster_is_calm(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canned, "plan", PlanView)
    monkeypatch.setattr(canned, "demand", tuple)
    monkeypatch.setattr(canned, "alarms", tuple)

    page = run("status").out

    assert "No work waits." in page
    assert "!" not in page


def test_demand_without_a_finding_is_shown_too(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canned, "plan", lambda: PlanView(at_s=canned.NOW_S, summary="Quiet."))

    page = run("status").out

    assert "onprem, cloud" in page
    assert "GPU:16" in page


def test_jobs_says_how_to_start_one(lab: Lab, run: Run) -> None:
    lab.service._jobs.clear()

    assert "hybrid submit --" in run("jobs").out


def test_a_job_with_a_wild_command_stays_on_one_line(lab: Lab, run: Run) -> None:
    spec = JobSpec(entrypoint="python a.py\nrm -rf /\x1b[31m", name="n")
    lab.service.submit(spec, job_id="j-wild")

    line = next(line for line in run("jobs").out.splitlines() if "j-wild" in line)

    assert "rm -rf /\\x1b[31m" in line


def test_events_are_oldest_first_and_can_be_limited(lab: Lab, run: Run) -> None:
    page = run("events", "--limit", "2").out.splitlines()

    assert page[0].split() == ["TIME", "EVENT", "ABOUT", "MESSAGE"]
    assert [line.split()[2] for line in page[1:]] == ["launch_accepted", "node_joined"]


def test_events_as_they_come_look_like_those_that_were(lab: Lab, run: Run) -> None:
    once = run("events").out.splitlines()
    rows = [_row(event, canned.NOW_S) for event in canned.events()]

    assert [_line(row).split() for row in rows] == [
        [words.moment(event.at_s, canned.NOW_S), *line.split()[2:]]
        for event, line in zip(canned.events(), once[1:], strict=True)
    ]
    assert {_line(row).index(row[1]) for row in rows} == {10}


def test_an_answer_that_only_time_made_another_is_the_same_for_a_watcher() -> None:
    status = {
        "at_s": 1.0,
        "controller": {"tick_count": 4, "state": "ready"},
        "nodes": [{"name": "gpu-1", "idle_s": 3.0, "gpus_used": 0.0}],
        "budget": {"now": {"day_usd": 0.5, "usd_per_hour": 2.4}},
        "summary": "3 requests waiting: waited 4 s of the 300 s that home gets first.",
    }
    later = json.loads(
        json.dumps(status)
        .replace('"at_s": 1.0', '"at_s": 9.0')
        .replace('"tick_count": 4', '"tick_count": 5')
        .replace('"idle_s": 3.0', '"idle_s": 4.0')
        .replace('"day_usd": 0.5', '"day_usd": 0.6')
        .replace("waited 4 s", "waited 5.5 s")
    )

    assert _timeless(later) == _timeless(status)
    for old, new in (("ready", "stalled"), ('"gpus_used": 0.0', '"gpus_used": 1.0')):
        assert _timeless(json.loads(json.dumps(status).replace(old, new))) != _timeless(status)


def test_work_that_differs_in_its_places_only_is_in_rows_of_its_own(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = Reason(code="stabilising", message="soon")
    places = ("site=cloud", "site=onprem or site=cloud", "site=cloud,accelerator=H100")
    findings = tuple(
        Finding(shape={"GPU": 1.0}, count=3, where=where, reason=reason) for where in places
    )
    demand = tuple(DemandView(shape={"GPU": 1.0}, count=3, where=where) for where in places)
    plan = PlanView(at_s=canned.NOW_S, summary="Soon.", findings=findings[:2])
    monkeypatch.setattr(canned, "plan", lambda: plan)
    monkeypatch.setattr(canned, "demand", lambda: demand)

    page = run("status").out

    assert page.count("GPU:1 ") == 3
    for shown in ("  cloud  ", "  onprem, cloud  ", "  site=cloud,accelerator=H100  "):
        assert shown in page


def test_events_about_one_subject_only(lab: Lab, run: Run) -> None:
    shown = json.loads(run("events", "--json", "--subject", "i-0000000001").out)

    assert {event["subject"] for event in shown["events"]} == {"i-0000000001"}


@pytest.mark.parametrize(("since", "count"), [("1h", 2), ("2000d", 7), ("1s", 0)])
def test_events_since_leaves_out_older_ones(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch, since: str, count: int
) -> None:
    import time

    young = [
        event if event.seq < 6 else event.model_copy(update={"at_s": time.time() - 60})
        for event in canned.events()
    ]
    monkeypatch.setattr(canned, "events", lambda: tuple(young))

    shown = json.loads(run("events", "--json", "--since", since).out)

    assert len(shown["events"]) == count


def test_events_since_with_a_limit_are_the_last_of_them(lab: Lab, run: Run) -> None:
    every = [event.seq for event in canned.events()]

    shown = json.loads(run("events", "--json", "--since", "2000d", "--limit", "2").out)

    assert [event["seq"] for event in shown["events"]] == every[-2:]
    assert len(run("events", "--since", "2000d", "--limit", "3").out.splitlines()) == 4


def test_cost_shows_unknown_use_as_unknown(lab: Lab, run: Run) -> None:
    line = next(line for line in run("cost").out.splitlines() if line.startswith("local"))

    assert line.split()[-2:] == ["$1.81", "?"]


def test_cost_since_asks_for_that_time_only(lab: Lab, run: Run) -> None:
    shown = CostView.model_validate_json(run("cost", "--json", "--since", "7d").out)

    assert shown.since_at_s > 1.7e9
    assert "in the last 7d" in run("cost", "--since", "7d").out


@pytest.mark.parametrize("command", ["events", "cost"])
def test_a_senseless_duration_is_a_usage_error(lab: Lab, run: Run, command: str) -> None:
    shown = run(command, "--since", "soon")

    assert shown.code == 2
    assert "'soon' is not a duration" in shown.err


def test_an_unhealthy_controller_is_said_so(lab: Lab, run: Run) -> None:
    lab.service.problem = LedgerError("ledger.db: the disk is full; make room")

    shown = run("status")

    assert shown.code == 5
    assert shown.err == "Error: ledger.db: the disk is full; make room\n"
    assert shown.out == ""


def test_event_facts_survive_json(lab: Lab, run: Run) -> None:
    shown = EventsView.model_validate_json(run("events", "--json").out)

    assert isinstance(shown.events[0], Event)
    assert shown.events[0].facts == {"usd_per_hour": 2.4}
    assert isinstance(canned.plan().actions[0].reason, Reason)

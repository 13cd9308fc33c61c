"""`hybrid drain`, `pause`, `resume`, `gc`, in a pipe."""

from __future__ import annotations

import json

import pytest

from hybrid.core.views import Accepted, GcView
from tests.api import canned
from tests.cli.conftest import Lab, Run


def test_drain_asks_nobody_without_a_terminal(lab: Lab, run: Run) -> None:
    shown = run("drain", "i-1")

    assert shown.code == 2
    assert "pass -y" in shown.err
    assert lab.service.drains == []


@pytest.mark.parametrize("words", [["drain", "i-1"], ["gc"]])
def test_nobody_is_asked_about_a_cluster_that_is_not_there(run: Run, words: list[str]) -> None:
    shown = run(*words)

    assert shown.code == 3
    assert "no hybrid cluster is running" in shown.err


def test_drain_with_yes_passes_target_deadline_and_owner(lab: Lab, run: Run) -> None:
    shown = run("drain", "i-1", "--deadline", "10m", "-y")

    target, deadline_s, owner = lab.service.drains[0]
    assert (target, deadline_s) == ("i-1", 600.0)
    assert "@" in owner
    assert "takes no new work" in shown.out


def test_drain_without_a_deadline_leaves_it_to_the_configuration(lab: Lab, run: Run) -> None:
    run("drain", "i-1", "-y")

    assert lab.service.drains[0][1] is None


def test_what_is_refused_has_its_own_exit_code(lab: Lab, run: Run) -> None:
    shown = run("drain", "head", "-y")

    assert shown.code == 4
    assert shown.err.startswith("Error: the head cannot be drained")


def test_pause_and_resume_switch(lab: Lab, run: Run) -> None:
    run("pause", "out")
    assert lab.service.mode.is_out_paused
    assert not lab.service.mode.is_in_paused

    run("pause", "all")
    run("resume", "in")
    assert lab.service.mode.is_out_paused
    assert not lab.service.mode.is_in_paused

    assert Accepted.model_validate_json(run("resume", "--json").out).is_ok
    assert not lab.service.mode.is_out_paused


def test_a_dry_run_is_switched_on_and_off(lab: Lab, run: Run) -> None:
    assert run("pause", "dry-run").code == 0
    assert lab.service.mode.is_dry_run
    assert "Dry run" in run("status").out

    assert run("resume", "dry-run").code == 0
    assert not lab.service.mode.is_dry_run


@pytest.mark.parametrize("words", [["pause"], ["pause", "up"], ["resume", "down"]])
def test_a_senseless_direction_is_a_usage_error(lab: Lab, run: Run, words: list[str]) -> None:
    assert run(*words).code == 2


def test_gc_dry_run_only_looks(lab: Lab, run: Run) -> None:
    shown = run("gc", "--dry-run")

    assert [line.split()[-1] for line in shown.out.splitlines()[:2]] == ["ENDED", "no"]
    assert "provider:aws cannot be read, so its orphans are unknown: no credentials" in shown.err
    assert shown.code == 1


def test_gc_without_any_finding_does_not_hide_what_it_could_not_read(lab: Lab, run: Run) -> None:
    lab.service.gc_view = canned.gc(is_dry_run=True).model_copy(update={"items": ()})

    shown = run("gc", "--dry-run")

    assert shown.out == "No orphans in what could be read.\n"
    assert shown.code == 1


def test_gc_that_reads_all_clouds_and_finds_nothing_is_done(lab: Lab, run: Run) -> None:
    clean = {"items": (), "unreadable": ()}
    lab.service.gc_view = canned.gc(is_dry_run=True).model_copy(update=clean)

    shown = run("gc", "--dry-run")

    assert (shown.code, shown.out) == (0, "No orphans.\n")


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_gc_that_cannot_end_an_orphan_fails(lab: Lab, run: Run, words: tuple[str, ...]) -> None:
    left = canned.gc(is_dry_run=True).model_copy(update={"is_dry_run": False, "unreadable": ()})
    lab.service.gc_view = left

    shown = run("gc", "-y", *words)

    assert shown.code == 1
    assert "not ended: local p-9" in shown.err


def test_gc_for_real_needs_a_yes(lab: Lab, run: Run) -> None:
    assert run("gc").code == 2
    assert GcView.model_validate_json(run("gc", "-y", "--json").out).items[0].is_terminated
    assert json.loads(run("gc", "--dry-run", "--json").out)["is_dry_run"] is True

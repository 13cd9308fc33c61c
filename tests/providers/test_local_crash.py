"""Crashes of the controller and of instances of the local cloud. Real processes, fake Ray."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import pytest

from hybrid.core.errors import (
    NotFoundError,
)
from hybrid.core.models import CloudState, LaunchSpec, Offer
from hybrid.node.stopping import stop
from providers.local import LocalProvider
from providers.local.machine import Machine
from tests.node.box import wait_until
from tests.providers.contract import end, launch, listed, live, make_spec
from tests.providers.local_cloud import LocalCloud, wait_for_running

pytestmark = pytest.mark.slow


def test_a_machine_whose_every_process_is_killed_is_gone(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    wait_for_running(cloud, provider_id)
    for pid in cloud.pids():
        os.kill(pid, signal.SIGSTOP)

    for pid in cloud.pids():
        os.kill(pid, signal.SIGKILL)

    wait_until(lambda: not cloud.pids(), "all to be gone")
    assert listed(provider)[provider_id].state is CloudState.GONE
    provider.terminate([provider_id])  # still listed, so no error
    with pytest.raises(NotFoundError):
        provider.extend([provider_id], until_s=time.time() + 60)
    _remove_scratch(cloud, provider_id)


def test_a_machine_nobody_looks_after_says_so_and_can_be_ended(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    wait_for_running(cloud, provider_id)
    path = cloud.instance(provider_id.removeprefix("local-"))
    supervisor = json.loads((path / "pid.json").read_bytes())["pid"]
    guardian = int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])
    for number in (signal.SIGSTOP, signal.SIGKILL):
        os.kill(guardian, number)
        os.kill(supervisor, number)

    problem = wait_until(lambda: listed(provider)[provider_id].problem, "the problem")

    assert "was killed" in problem
    assert listed(provider)[provider_id].state is CloudState.RUNNING
    end(provider, provider_id)
    assert cloud.pids() == []


def test_a_record_without_a_process_is_pending_and_starts_with_its_token(
    cloud: LocalCloud,
) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    provider_id = _launch_and_die_before_start(provider, spec)

    before = listed(provider)[provider_id].state
    again = launch(provider, spec)

    assert before is CloudState.PENDING
    assert again == provider_id
    wait_for_running(cloud, provider_id)


def test_a_record_without_a_process_is_ended_for_good(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    provider_id = _launch_and_die_before_start(provider, spec)

    end(provider, provider_id)

    assert launch(provider, spec) == provider_id  # the token brings nothing back
    assert live(provider) == []
    assert cloud.pids() == []


def test_a_record_whose_lease_passed_before_its_start_is_gone(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud, expires_in_s=-1.0)

    provider_id = _launch_and_die_before_start(provider, spec)

    assert listed(provider)[provider_id].state is CloudState.GONE


def test_a_crash_at_any_line_of_a_launch_rents_one_machine(cloud: LocalCloud) -> None:
    cloud.pool |= {"stock": 1000, "boot_delay": "1h"}
    provider = cloud.provider()
    offer = provider.offers()[0]
    lines: dict[Place, None] = {}
    specs = [make_spec(cloud)]
    _traced(lines.setdefault, lambda: launch(provider, specs[0], offer=offer))
    for line in lines:
        specs.append(make_spec(cloud))
        _launch_and_die_at(line, provider, offer, specs[-1])

    for spec in specs:
        launch(provider, spec, offer=offer)

    assert len(lines) > 30
    items = provider.list_instances()
    assert sorted(i.instance_id for i in items) == sorted(s.instance_id for s in specs)
    assert {item.state for item in items} == {CloudState.PENDING}
    supervisors = {
        json.loads((cloud.instance(spec.instance_id) / "pid.json").read_bytes())["pid"]
        for spec in specs
    }
    assert len(cloud.pids()) == 2 * len(supervisors) == 2 * len(specs)


def _launch_and_die_before_start(provider: LocalProvider, spec: LaunchSpec) -> str:
    """Launch in a process that is killed between its record and the start of the node."""
    offer = provider.offers()[0]
    pid = os.fork()
    if pid == 0:

        def die(_: object) -> NoReturn:
            os._exit(9)

        Machine.start = die  # type: ignore[assignment, method-assign]
        launch(provider, spec, offer=offer)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    return f"local-{spec.instance_id}"


Place: TypeAlias = tuple[str, int]

# The others only compute or read.
_STEPS_OF_A_LAUNCH = {"launch", "_rent", "locked", "create", "_drop_drafts", "start", "_call"}


def _traced(meet: Callable[[Place], object], act: Callable[[], object]) -> None:
    """Act, and meet every line of this provider that could matter right before it runs."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if "providers/local" not in code.co_filename or code.co_name not in _STEPS_OF_A_LAUNCH:
            return None
        if event == "line":
            meet((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)


def _launch_and_die_at(
    line: Place, provider: LocalProvider, offer: Offer, spec: LaunchSpec
) -> None:
    """Launch in a process that is killed right before a line."""
    pid = os.fork()
    if pid == 0:
        _traced(
            lambda place: os._exit(9) if place == line else None,
            lambda: launch(provider, spec, offer=offer),
        )
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, line


def _remove_scratch(cloud: LocalCloud, provider_id: str) -> None:
    """Do what a machine does not do that was killed whole."""
    stop(cloud.instance(provider_id.removeprefix("local-")))

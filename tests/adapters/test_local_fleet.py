"""On-prem hosts on this machine: real processes, fake Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.adapters.local_fleet import LocalFleet
from hybrid.core.errors import ConfigError, FleetError
from hybrid.core.ports import HostState
from hybrid.node import processes
from tests.adapters.local_base import LocalBase, local_base
from tests.node.box import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def base(tmp_path: Path) -> Iterator[LocalBase]:
    with local_base(tmp_path) as made:
        yield made


def wait_for(fleet: LocalFleet, host: str, state: HostState) -> None:
    wait_until(lambda: fleet.probe(host).state is state, f"{host} to be {state}")


def test_a_host_joins_and_leaves_and_both_can_be_repeated(base: LocalBase) -> None:
    fleet = base.fleet()
    assert fleet.hosts() == ("a", "b")
    assert fleet.probe("a").state is HostState.ABSENT
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    before = fleet.probe("a")

    fleet.join("a")

    assert fleet.probe("a") == before
    assert before.shape == {"CPU": 4, "GPU": 4}
    names = [p.name for pid in before.pids if (p := processes.find(pid))]
    assert names[1:] == ["raylet"]
    fleet.leave("a")
    fleet.leave("a")
    assert fleet.probe("a").state is HostState.ABSENT
    assert fleet.probe("a").pids == ()
    assert base.pids() == []


def test_hosts_do_not_share_a_fate(base: LocalBase) -> None:
    fleet = base.fleet()
    for host in fleet.hosts():
        fleet.join(host)
        wait_for(fleet, host, HostState.JOINED)

    os.kill(fleet.probe("a").pids[1], signal.SIGKILL)

    wait_for(fleet, "a", HostState.FAILED)
    assert fleet.probe("a").problem == "Ray ended by itself: raylet was killed by SIGKILL"
    assert fleet.probe("b").state is HostState.JOINED
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    assert fleet.probe("a").problem == ""


def test_a_restarted_controller_finds_its_hosts_at_work(base: LocalBase) -> None:
    fleet = base.fleet()
    fleet.join("a")
    before = base.settle("a")

    again = base.fleet()
    again.join("a")

    assert again.probe("a").state is HostState.JOINED
    assert base.pids() == before


def test_a_host_that_waits_for_its_head_is_joining(
    base: LocalBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY", "hang")
    fleet = base.fleet()

    fleet.join("a")

    assert fleet.probe("a").state is HostState.JOINING
    fleet.leave("a")
    assert base.pids() == []


def test_a_host_that_cannot_start_says_why(
    base: LocalBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY", "no_raylet")
    fleet = base.fleet()

    fleet.join("a")

    wait_for(fleet, "a", HostState.FAILED)
    assert "`ray start` left no raylet" in fleet.probe("a").problem


def test_a_host_whose_every_process_was_killed_has_failed(base: LocalBase) -> None:
    fleet = base.fleet()
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in base.pids():
            os.kill(pid, number)

    wait_for(fleet, "a", HostState.FAILED)

    assert "its processes were killed" in fleet.probe("a").problem
    fleet.join("a")
    wait_for(fleet, "a", HostState.JOINED)


def test_hosts_that_left_the_configuration_are_found_and_ended(base: LocalBase) -> None:
    before = base.fleet(("a", "b"))
    for host in before.hosts():
        before.join(host)
        wait_for(before, host, HostState.JOINED)

    after = base.fleet(("b",))

    assert after.removed_hosts() == ["a"]
    assert after.leave_removed() == ["a"]
    assert after.removed_hosts() == []
    assert after.probe("b").state is HostState.JOINED


def test_an_unknown_host_is_named_with_the_known_ones(base: LocalBase) -> None:
    fleet = base.fleet()

    for verb in (fleet.join, fleet.leave, fleet.probe):
        with pytest.raises(FleetError, match="there is no host 'c'; hosts of this cluster: a, b"):
            verb("c")


@pytest.mark.parametrize("name", ["head", "../x", "a/b", "", "-x", "a..b"])
def test_a_name_that_cannot_be_a_folder_is_refused(base: LocalBase, name: str) -> None:
    with pytest.raises(ConfigError):
        base.fleet((name,))

"""A node whose machine is taken back, with real processes and a fake Ray."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hybrid.node import processes
from hybrid.node.folder import Phase
from tests.node.box import FAKE_RAY, Box, wait_until
from tests.node.controller import FakeController

pytestmark = pytest.mark.slow

NODE_ID = "fedcba9876543210" * 3 + "fedcba98"


class Spot:
    """An instance with orders for a notice."""

    def __init__(self, box: Box, tmp_path: Path, *, drain: str = "ok") -> None:
        self.box = box
        self.calls_file = tmp_path / "drain-calls"
        words = ["drain-node", "--node-id={node_id}", "--message={message}", "--left={left_s}"]
        box.write(
            # The fake raylet keeps the command line of its start.
            command=[*box.orders["command"], f"--node_id={NODE_ID}"],  # type: ignore[misc]
            drain_command=[sys.executable, str(FAKE_RAY), *words],
            env={
                "FAKE_RAY": "ok",
                "FAKE_DRAIN": drain,
                "FAKE_DRAIN_CALLS": str(self.calls_file),
            },
        )

    def give_notice(self, *, in_s: float = 60.0, origin: str = "aws-terminate") -> None:
        draft = self.box.path / ".notice"
        draft.write_text(f"{time.time() + in_s:.0f} {origin}")
        draft.rename(self.box.path / "notice")

    def calls(self) -> list[dict[str, Any]]:
        if not self.calls_file.exists():
            return []
        return [json.loads(line) for line in self.calls_file.read_text().splitlines()]

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.box.problem, f"{words!r}; now {self.box.problem!r}")


@pytest.fixture
def spot(instance: Box, tmp_path: Path) -> Spot:
    return Spot(instance, tmp_path)


def test_a_notice_makes_the_node_ask_ray_to_drain_it(spot: Spot) -> None:
    with FakeController(ray_token="the-token") as controller:
        join_token = spot.box.path / "join_token"
        join_token.write_text("once")
        where = {"url": controller.url, "instance_id": "i-1", "join_token_file": str(join_token)}
        spot.box.write(join=where)
        spot.box.start_and_wait()

    spot.give_notice(in_s=60)

    spot.wait_for("Ray drains the node")
    (call,) = spot.calls()
    assert call["argv"][:2] == ["drain-node", f"--node-id={NODE_ID}"]
    assert "(aws-terminate)" in call["argv"][2]
    assert 50 <= int(call["argv"][3].removeprefix("--left=")) <= 60
    assert call["token"] == "the-token"
    status = spot.box.folder.status()
    assert status is not None
    assert status.phase is Phase.RUNNING
    assert status.raylet_pid == spot.box.raylet().pid
    assert "the cloud takes this machine back at" in (spot.box.path / "node.log").read_text()
    # to nobody else's eyes
    written = b"".join(p.read_bytes() for p in spot.box.path.iterdir() if p.is_file())
    assert b"the-token" not in written


def test_a_drain_that_fails_is_tried_until_it_works(instance: Box, tmp_path: Path) -> None:
    spot = Spot(instance, tmp_path, drain="fail,fail,ok")
    spot.box.start_and_wait()

    spot.give_notice()

    spot.wait_for("Ray drains the node")
    assert len(spot.calls()) == 3
    assert "no such node" in (spot.box.path / "node.log").read_text()


def test_a_node_that_was_drained_says_so_when_ray_ends(spot: Spot) -> None:
    spot.box.start_and_wait()
    spot.give_notice()
    spot.wait_for("Ray drains the node")

    os.kill(spot.box.raylet().pid, signal.SIGTERM)

    spot.box.wait_for(Phase.EXITED)
    assert spot.box.problem.startswith("the cloud takes this machine back at ")
    assert "Ray ended by itself" in spot.box.problem


def test_a_stop_ends_a_node_whose_drain_hangs(instance: Box, tmp_path: Path) -> None:
    spot = Spot(instance, tmp_path, drain="hang")
    spot.box.start_and_wait()
    spot.give_notice()
    wait_until(spot.calls, "the call")

    done = spot.box.call("stop")

    assert done.returncode == 0
    assert spot.box.everything() == []


def test_a_machine_that_is_taken_back_before_ray_starts_starts_none(spot: Spot) -> None:
    spot.give_notice()

    spot.box.start_and_wait(Phase.FAILED)

    assert "Ray is not started any more" in spot.box.problem
    assert spot.calls() == []
    assert not spot.box.temp_dir.exists()


def test_rubbish_and_a_node_without_orders_for_it_drain_nothing(
    instance: Box, tmp_path: Path
) -> None:
    spot = Spot(instance, tmp_path)
    spot.box.start_and_wait()
    (spot.box.path / "notice").write_text("soon $(reboot)")
    time.sleep(1.5)
    assert (spot.calls(), spot.box.problem) == ([], "")

    spot.box.call("stop")
    spot.box.folder.take_back_stop()
    spot.box.write(drain_command=None)
    spot.give_notice()
    spot.box.start_and_wait()
    time.sleep(1.5)

    assert (spot.calls(), spot.box.problem) == ([], "")


# --- a lease that is over -------------------------------------------------------------------


def leased(box: Box, *, for_s: float = 2.0, leave_s: float = 30.0) -> None:
    lease = box.path / "lease"
    lease.write_text(f"{time.time() + for_s}")
    box.write(lease_file=str(lease), leave_s=leave_s)


def test_a_node_whose_lease_is_over_asks_ray_to_drain_it_before_it_ends(spot: Spot) -> None:
    leased(spot.box, leave_s=4.0)
    spot.box.start_and_wait()

    spot.wait_for("nobody renewed the lease of this machine")
    spot.wait_for("Ray drains the node")
    assert processes.is_alive(spot.box.raylet())
    spot.box.wait_for(Phase.STOPPED)

    (call,) = spot.calls()
    assert call["argv"][1] == f"--node-id={NODE_ID}"
    assert 1 <= int(call["argv"][3].removeprefix("--left=")) <= 4
    assert spot.box.problem == "lease ended"
    wait_until(lambda: not spot.box.everything(), "all to be gone")


def test_a_node_that_ray_has_emptied_ends_at_once(spot: Spot) -> None:
    leased(spot.box, leave_s=1e6)
    spot.box.start_and_wait()
    spot.wait_for("Ray drains the node")

    os.kill(spot.box.raylet().pid, signal.SIGKILL)  # as Ray ends it when nothing runs any more

    spot.box.wait_for(Phase.STOPPED)
    assert spot.box.problem == "lease ended"


@pytest.mark.parametrize("drain", ["fail", "hang"])
def test_a_ray_that_does_not_answer_holds_up_no_end(
    instance: Box, tmp_path: Path, drain: str
) -> None:
    spot = Spot(instance, tmp_path, drain=drain)
    leased(spot.box, leave_s=3.0)
    spot.box.start_and_wait()

    spot.box.wait_for(Phase.STOPPED)

    assert spot.calls()
    assert spot.box.problem == "lease ended"
    wait_until(lambda: not spot.box.everything(), "all to be gone")


def test_an_order_to_stop_ends_a_node_that_is_leaving(spot: Spot) -> None:
    leased(spot.box, leave_s=1e6)
    spot.box.start_and_wait()
    spot.wait_for("Ray drains the node")

    spot.box.call("stop")

    spot.box.wait_for(Phase.STOPPED)


def test_a_pretended_machine_is_told_drained_and_taken(spot: Spot) -> None:
    spot.box.write(takeback={"after_s": 4, "notice_s": 3})
    spot.box.start_and_wait()

    spot.wait_for("(local-interrupt); Ray drains the node")
    assert processes.is_alive(spot.box.raylet())
    spot.box.wait_for(Phase.STOPPED)

    wait_until(lambda: not spot.box.everything(), "all to be gone")
    assert spot.box.problem == "the cloud took this machine back"
    assert len(spot.calls()) == 1
    assert not spot.box.temp_dir.exists()

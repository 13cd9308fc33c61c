"""Google takes a spot machine back: the start-up script and the shutdown script, in a real bash."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import Market, Offer
from hybrid.node import notice
from hybrid.node.orders import parse
from providers.gcp.naming import Place
from providers.gcp.offers import offer_of
from providers.gcp.params import Params
from providers.gcp.request import gang_body, instance_body
from providers.gcp.userdata import LIMIT_BYTES, NOTICE_S, gang_script, shutdown_script
from providers.gcp.userdata import startup_script as startup_script_of
from tests.providers.gcp_cloud import POOL, SETTINGS
from tests.providers.test_gcp_userdata import SPEC, Machine, an_offer

pytestmark = pytest.mark.slow

PREEMPTED = "*/instance/preempted"


def spot_params() -> Params:
    return Params.model_validate({**SETTINGS, "pools": [{**POOL, "use_spot": True}]})


def spot_offer() -> Offer:
    return offer_of(spot_params().pools[0], "gcp", usd_per_hour=0.85)


class SpotMachine(Machine):
    """A machine of a spot pool, whose metadata server answers what the file `told` holds."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.command("curl", f'[[ "${{!#}}" == {PREEMPTED} ]] || exit 22\ncat told')
        self.say("FALSE")

    def say(self, words: str) -> None:
        (self.path / "told").write_text(words)

    def boot_as(self, offer: Offer) -> None:
        script = startup_script_of(
            offer,
            SPEC,
            join_token="once",
            python=self.python,
            folder=str(self.folder),
            look_s=0.05,
            spot_look_s=0.02,
        )
        self.run(script)


@pytest.fixture
def machine(tmp_path: Path) -> SpotMachine:
    return SpotMachine(tmp_path)


def test_a_machine_that_is_taken_back_is_told(machine: SpotMachine) -> None:
    machine.command(
        "python", "sleep 0.2; echo TRUE > told; while [[ ! -e run/notice ]]; do sleep 0.02; done"
    )
    began_s = time.time()

    machine.boot_as(spot_offer())

    told = notice.read(machine.folder / "notice")
    assert told is not None
    assert told.origin == "gcp-preempted"
    assert began_s + NOTICE_S - 1 <= told.at_s <= time.time() + NOTICE_S


@pytest.mark.parametrize("words", ["FALSE", "", "<html>TRUE</html>", "TRUE\nFALSE", "$(reboot)"])
def test_anything_but_true_is_no_notice(machine: SpotMachine, words: str) -> None:
    machine.say(words)
    machine.command("python", "sleep 0.4; touch finished")

    machine.boot_as(spot_offer())

    assert (machine.path / "finished").exists()
    assert not (machine.folder / "notice").exists()


def test_a_machine_on_demand_asks_for_no_notice(machine: SpotMachine) -> None:
    machine.say("TRUE")
    machine.command("python", "sleep 0.3")

    machine.boot_as(an_offer())

    assert not (machine.folder / "notice").exists()
    assert "instance/preempted" not in startup_script_of(
        an_offer(), SPEC, join_token="x", python="/p"
    )


def test_the_orders_of_a_spot_machine_name_the_command_that_drains(machine: SpotMachine) -> None:
    machine.boot_as(spot_offer())

    orders = parse(json.loads(machine.read("node.json")))
    assert spot_offer().market is Market.SPOT
    assert "--reason=DRAIN_NODE_REASON_PREEMPTION" in orders.drain_command
    assert "--address=10.0.0.2:6379" in orders.drain_command


def test_the_script_of_a_spot_gang_watches_too_and_is_small() -> None:
    ids = [f"i-{'f' * 28}{n:02}" for n in range(32)]

    script = gang_script(
        spot_offer(),
        SPEC,
        names={i: f"hybrid-{i}-{'0' * 12}" for i in ids},
        join_tokens=dict.fromkeys(ids, "x" * 64),
        python="/opt/hybrid/bin/python",
    )

    assert "watch_preemption &" in script
    assert len(script.encode()) < LIMIT_BYTES * 0.7


# --- the shutdown ------------------------------------------------------------------------------


def shut_down(machine: SpotMachine, *, wait_s: int = 25) -> float:
    """Run the shutdown script; return how long it took."""
    began_s = time.monotonic()
    script = shutdown_script(str(machine.folder), wait_s=wait_s)
    path = f"{machine.path}/bin:/usr/bin:/bin"
    subprocess.run(["bash", "-c", script], env={"PATH": path}, timeout=30)
    return time.monotonic() - began_s


def status(machine: SpotMachine, phase: str) -> None:
    machine.folder.mkdir(exist_ok=True)
    (machine.folder / "status.json").write_text(json.dumps({"phase": phase, "problem": ""}))


def test_a_system_that_shuts_down_because_of_the_notice_waits_for_the_node(
    machine: SpotMachine,
) -> None:
    machine.say("TRUE")
    status(machine, "running")

    assert shut_down(machine, wait_s=2) >= 1.5


@pytest.mark.parametrize(
    ("told", "phase"), [("TRUE", "exited"), ("FALSE", "running"), ("", "running"), ("TRUE", "")]
)
def test_no_other_shutdown_waits(machine: SpotMachine, told: str, phase: str) -> None:
    machine.say(told)
    if phase:
        status(machine, phase)

    assert shut_down(machine) < 10


@pytest.mark.parametrize("use_spot", [True, False])
def test_only_spot_machines_and_gangs_get_a_shutdown_script(use_spot: bool) -> None:
    raw = {**SETTINGS, "pools": [{**POOL, "use_spot": use_spot}]}
    (pool,) = Params.model_validate(raw).pools
    more: Mapping[str, Any] = {"project": "p", "labels": {}, "script": "s", "expires_at_s": 1.0}

    single: Any = instance_body(pool, Place("p", pool.zone, "n"), **more)
    gang: Any = gang_body(pool, ["n", "m"], **more)["instanceProperties"]

    for body in (single, gang):
        keys = {item["key"] for item in body["metadata"]["items"]}
        assert ("shutdown-script" in keys) is use_spot

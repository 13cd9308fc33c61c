"""Google Cloud: the start-up script, read by a real bash with stand-ins for what is outside."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from hybrid.core.models import LaunchSpec, Offer
from hybrid.node.orders import Role, parse
from providers.gcp.asking import single
from providers.gcp.offers import offer_of
from providers.gcp.params import Params
from providers.gcp.userdata import LIMIT_BYTES, machines_url, startup_script
from tests.providers.gcp_cloud import POOL, SETTINGS

pytestmark = pytest.mark.slow

SPEC = LaunchSpec(
    cluster_id="c-1",
    instance_id="i-1",
    epoch=1,
    head_address="10.0.0.2:6379",
    controller_url="http://10.0.0.2:8080",
    labels={"site": "cloud", "provider": "gcp", "zone": ""},
    expires_at_s=4_000_000_000.0,
    ray_version="2.60.0",
    python_version="3.11",
)
NASTY = "a'b\"c$(touch pwned)`touch pwned`\\;|&<>\n{x} %s !"


def an_offer() -> Offer:
    (pool,) = Params.model_validate({**SETTINGS, "pools": [POOL]}).pools
    return offer_of(pool, "gcp", usd_per_hour=0.85)


class Machine:
    """A folder in which the script runs, with a fake python, curl and poweroff on the path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path / "run"
        (path / "bin").mkdir()
        self.python = self.command("python", 'echo "$@" > python.args')
        self.command("poweroff", "touch powered-off; kill 0")
        self.command("curl", "cat metadata")

    def command(self, name: str, body: str) -> str:
        file = self.path / "bin" / name
        file.write_text(f"#!/bin/bash\ncd '{self.path}'\n{body}\n")
        file.chmod(0o755)
        return str(file)

    def boot(
        self, spec: LaunchSpec = SPEC, *, join_token: str = "once", delete_at: str = ""
    ) -> None:
        script = startup_script(
            an_offer(),
            spec,
            join_token=join_token,
            python=self.python,
            delete_at=delete_at,
            folder=str(self.folder),
            look_s=0.05,
        )
        self.run(script)

    def run(self, script: str) -> None:
        subprocess.run(
            ["bash", "-c", script],
            cwd=self.path,
            env={"PATH": f"{self.path}/bin:{os.environ['PATH']}"},
            start_new_session=True,  # poweroff ends the whole group
            capture_output=True,
            timeout=30,
        )

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_node_starts_with_its_orders_and_ends_its_machine(machine: Machine) -> None:
    machine.boot()

    assert (machine.path / "python.args").read_text() == f"-P -m hybrid.node run {machine.folder}\n"
    assert machine.read("join_token") == "once"
    assert machine.read("lease") == "4000000000.000"
    assert (machine.path / "powered-off").exists()


def test_the_orders_are_those_of_the_node_program(machine: Machine) -> None:
    machine.boot()

    orders = parse(json.loads(machine.read("node.json")))
    assert (orders.id, orders.cluster_id, orders.role) == ("i-1", "c-1", Role.INSTANCE)
    assert orders.join is not None
    assert orders.join.url == "http://10.0.0.2:8080"
    assert orders.join.join_token_file == machine.folder / "join_token"
    assert orders.lease_file == machine.folder / "lease"
    assert "--address=10.0.0.2:6379" in orders.command
    assert "--labels=site=cloud,provider=gcp" in orders.command
    assert {"--num-cpus=8", "--num-gpus=1"} <= set(orders.command)
    assert orders.env["RAY_CLOUD_INSTANCE_ID"] == "i-1"


def test_the_join_token_is_for_root_only_and_in_no_command(machine: Machine) -> None:
    machine.boot(join_token="very-secret")

    assert (machine.folder / "join_token").stat().st_mode & 0o077 == 0
    assert "very-secret" not in machine.read("node.json")
    assert "very-secret" not in (machine.path / "python.args").read_text()


def test_no_value_can_become_a_command(machine: Machine) -> None:
    spec = SPEC.model_copy(update={"controller_url": f"http://{NASTY}", "cluster_id": NASTY})

    machine.boot(spec, join_token=NASTY)

    assert machine.read("join_token") == NASTY
    orders = parse(json.loads(machine.read("node.json")))
    assert orders.join is not None
    assert (orders.cluster_id, orders.join.url) == (NASTY, f"http://{NASTY}")
    assert not list(machine.path.rglob("pwned"))


def test_a_lease_that_moves_is_followed(machine: Machine) -> None:
    machine.command("python", "while ! grep -q 4100000000 run/lease; do sleep 0.02; done")
    (machine.path / "metadata").write_text("4100000000.5")

    machine.boot()

    assert machine.read("lease") == "4100000000.5"


@pytest.mark.parametrize("answer", ["", "never", "12;reboot", "<html>", "-5"])
def test_a_lease_that_is_none_changes_nothing(machine: Machine, answer: str) -> None:
    machine.command("python", "sleep 0.3; touch finished")
    (machine.path / "metadata").write_text(answer)

    machine.boot()

    assert machine.read("lease") == "4000000000.000"
    assert (machine.path / "finished").exists()


def test_a_machine_whose_node_program_hangs_past_its_lease_is_turned_off(machine: Machine) -> None:
    machine.command("python", "sleep 60")
    machine.command("curl", "exit 22")
    began_s = time.monotonic()

    machine.boot(SPEC.model_copy(update={"expires_at_s": time.time() - 3600}))

    assert (machine.path / "powered-off").exists()
    assert time.monotonic() - began_s < 50


def test_a_machine_that_can_keep_no_lease_is_turned_off(machine: Machine) -> None:
    machine.command("python", "sleep 20")
    machine.command("curl", "exit 22")
    (machine.folder / "lease").mkdir(parents=True)  # so nothing can be read from there
    began_s = time.monotonic()

    machine.boot()

    assert (machine.path / "powered-off").exists()
    assert time.monotonic() - began_s < 15


def test_a_clock_that_jumps_ahead_of_the_lease_turns_no_machine_off(machine: Machine) -> None:
    machine.command("curl", "exit 22")
    machine.command(
        "date", 'now=$(/bin/date +%s); [[ -e jumped ]] && now=$(( now + 86400 )); echo "$now"'
    )
    machine.command("python", "sleep 0.5; touch jumped; sleep 0.5; touch finished")

    machine.boot(SPEC.model_copy(update={"expires_at_s": time.time() + 1800}))

    assert (machine.path / "finished").exists()


def test_an_image_without_the_program_turns_itself_off(machine: Machine) -> None:
    Path(machine.python).unlink()

    machine.boot()

    assert (machine.path / "powered-off").exists()


AT = machines_url("", project="my-project", zone="us-central1-a")
TOKEN = "ya29.c-Aa_0/z+~="
TELLING = r"""
echo "$@" >> asked
case "${!#}" in
  */service-accounts/default/token) cat token ;;
  */instance/name) echo hybrid-c1-i1 ;;
  https://*) cat > given; [[ -e refused ]] && exit 22; touch deleted ;;
  *) exit 22 ;;
esac
"""


def told(machine: Machine, answer: str) -> None:
    machine.command("curl", TELLING)
    machine.command("sleep", "exec /bin/sleep 0.02")
    (machine.path / "token").write_text(answer)


def test_a_machine_with_the_right_to_asks_to_be_deleted_before_it_is_off(machine: Machine) -> None:
    told(machine, json.dumps({"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}))

    machine.boot(delete_at=AT)

    assert (machine.path / "deleted").exists()
    assert (machine.path / "powered-off").exists()
    assert (machine.path / "given").read_text() == f'header = "Authorization: Bearer {TOKEN}"\n'
    asked = (machine.path / "asked").read_text().splitlines()
    here = "https://compute.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a"
    # The watcher for notices asks its own questions at the same time.
    deletions = [line for line in asked if "DELETE" in line]
    assert len(deletions) == 1
    assert deletions[0].endswith(f"-X DELETE {here}/instances/hybrid-c1-i1")
    assert TOKEN not in "".join(asked)


def test_a_machine_that_may_not_delete_itself_is_off_all_the_same(machine: Machine) -> None:
    told(machine, json.dumps({"access_token": TOKEN}))
    (machine.path / "refused").touch()

    machine.boot(delete_at=AT)

    assert not (machine.path / "deleted").exists()
    assert (machine.path / "powered-off").exists()
    assert (machine.path / "asked").read_text().count("DELETE") == 3


@pytest.mark.parametrize("answer", ["", "<html>", "{}", '{"access_token": "x\\" -o /etc/passwd"}'])
def test_a_token_that_is_none_is_never_used(machine: Machine, answer: str) -> None:
    told(machine, answer)

    machine.boot(delete_at=AT)

    assert not (machine.path / "given").exists()
    assert (machine.path / "powered-off").exists()


def test_a_machine_whose_node_program_hangs_asks_to_be_deleted_too(machine: Machine) -> None:
    told(machine, json.dumps({"access_token": TOKEN}))
    machine.command("python", "exec /bin/sleep 60")

    machine.boot(SPEC.model_copy(update={"expires_at_s": time.time() - 3600}), delete_at=AT)

    assert (machine.path / "deleted").exists()
    assert (machine.path / "powered-off").exists()


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({}, False),
        ({"service_account": "node@p.iam.gserviceaccount.com"}, True),
        ({"service_account": "node@p.iam.gserviceaccount.com", "delete_itself": False}, False),
    ],
)
def test_only_a_machine_with_an_account_of_its_own_asks(
    changes: Mapping[str, object], is_told: bool
) -> None:
    params = Params.model_validate({**SETTINGS, **changes, "pools": [POOL]})
    (pool,) = params.pools

    body = single(params, pool, an_offer(), SPEC, token="t", join_token="j")

    assert ("X DELETE" in json.dumps(body)) is is_told


def test_the_script_is_small() -> None:
    script = startup_script(
        an_offer(), SPEC, join_token="x" * 64, python="/opt/hybrid/bin/python", delete_at=AT
    )

    assert len(script.encode()) < LIMIT_BYTES / 4


def test_a_script_that_is_too_long_is_refused() -> None:
    spec = SPEC.model_copy(update={"controller_url": "http://x/" + "y" * LIMIT_BYTES})

    with pytest.raises(ValueError, match="more than 16384"):
        startup_script(an_offer(), spec, join_token="x", python="/p")

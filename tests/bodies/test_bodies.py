"""Bodies themselves: what a machine of an emulated cloud has of its own, and that it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.node.processes import descendants
from tests.bodies import Body, Boot, Network, require_bodies
from tests.bodies.body import ROOT
from tests.bodies.metadata import Ask, Told
from tests.bodies.network import _used_slots
from tests.node.box import wait_until

HOME = "/root"
pytestmark = [pytest.mark.bodies, pytest.mark.slow]

UNIT = """
cat > /etc/systemd/system/beat.service <<E
[Unit]
Description=Beats
[Service]
WorkingDirectory=/var/lib
ExecStart=/bin/sh -c "echo beat >> beats"
Restart=always
[Install]
WantedBy=multi-user.target
E
systemctl daemon-reload
systemctl enable --now --no-block beat.service
"""


@pytest.fixture
def network() -> Iterator[Network]:
    require_bodies()
    network = Network()
    yield network
    network.close()
    assert network.links() == []
    assert not network.folder.exists()


@pytest.fixture
def bodies(network: Network) -> Iterator[list[Body]]:
    """Bodies that are closed at the end of the test."""
    made: list[Body] = []
    yield made
    for body in made:
        body.close()
    wait_until(lambda: not network.cables(), "the cables to go")


def boot(network: Network, bodies: list[Body], script: str, **more: object) -> Body:
    body = Body(network, Boot(hostname=f"b{len(bodies)}", user_data=script, **more))  # type: ignore[arg-type]
    bodies.append(body)
    return body


def test_a_body_has_a_name_an_address_and_folders_of_its_own(
    network: Network, bodies: list[Body]
) -> None:
    body = boot(network, bodies, "hostname\nls /tmp /run /var/tmp\ntouch /tmp/mine\npoweroff\n")

    wait_until(lambda: not body.is_on, "its end")

    assert "\nb0\n" in body.console()
    assert body.inside("/tmp/mine").exists()
    assert not Path("/tmp/mine").exists()
    assert "bash_jobs" not in body.console()
    assert body.was_shut_down


def test_a_body_changes_no_file_of_this_machine(network: Network, bodies: list[Body]) -> None:
    """What installs something would install it here."""
    places = ("/usr", "/opt", "/etc", sys.prefix, str(ROOT))
    script = "".join(f"touch {place}/mine && echo wrote {place}\n" for place in places)

    body = boot(network, bodies, f"{script}touch {HOME}/mine /var/log/mine\npoweroff\n")

    wait_until(lambda: not body.is_on, "its end")
    assert "wrote" not in body.console()
    assert body.inside(f"{HOME}/mine").exists()
    assert not Path(f"{HOME}/mine").exists()


def test_bodies_reach_one_another_and_this_machine(network: Network, bodies: list[Body]) -> None:
    serve = f"{sys.executable} -m http.server 8000 --directory /etc/systemd\n"
    first = boot(network, bodies, serve)
    ask = f"until curl -s -m 2 -o /tmp/page http://{first.address}:8000/; do sleep 0.2; done\n"

    second = boot(network, bodies, ask)

    wait_until(second.inside("/tmp/page").exists, "an answer")


def test_the_cable_can_be_cut_and_healed(network: Network, bodies: list[Body]) -> None:
    body = boot(network, bodies, "sleep 60\n")

    body.cut_network()
    assert network.cables() == [network.cable(body.number)]
    body.heal_network()

    ip = ["ip", "-brief", "link", "show", network.cable(body.number)]
    wait_until(
        lambda: " UP " in subprocess.run(ip, capture_output=True, text=True).stdout, "it to be up"
    )


def test_its_metadata_service_is_the_clouds(network: Network, bodies: list[Body]) -> None:
    def answers(ask: Ask) -> Told:
        return Told(200, f"{ask.method} {ask.path} {ask.headers.get('x')}".encode())

    url = "http://metadata.example/a?b"
    script = f"curl -s -X PUT -H 'X: 1' {url} > /tmp/told\npoweroff\n"
    hosts = {"metadata.example": "169.254.169.254"}
    body = boot(network, bodies, script, answers=answers, hosts=hosts)

    wait_until(lambda: not body.is_on, "its end")

    assert body.inside("/tmp/told").read_text() == "PUT /a?b 1"
    assert body.asked == ["/a?b"]


def test_units_are_started_and_start_again(network: Network, bodies: list[Body]) -> None:
    body = boot(network, bodies, UNIT)
    beats = body.inside("/var/lib/beats")

    wait_until(lambda: beats.exists() and beats.read_text().count("beat") >= 3, "beats")


def test_the_power_button_runs_the_shutdown_script_first(
    network: Network, bodies: list[Body]
) -> None:
    script = "trap 'echo told >> /tmp/end; exit' TERM\ntouch /tmp/ready\nsleep 60 & wait\n"
    body = boot(network, bodies, script, shutdown_script="echo script >> /tmp/end\n")
    wait_until(body.inside("/tmp/ready").exists, "user data")

    body.press_power_button()

    wait_until(lambda: not body.is_on, "its end")
    assert body.inside("/tmp/end").read_text().split() == ["script", "told"]
    assert body.was_shut_down


def test_a_power_cut_ends_everything_at_once(network: Network, bodies: list[Body]) -> None:
    body = boot(network, bodies, "trap '' TERM\nsetsid sleep 987 &\ntouch /tmp/ready\nsleep 986\n")
    wait_until(body.inside("/tmp/ready").exists, "user data")
    inside = body.pids()

    body.cut_power()

    assert len(inside) >= 3
    assert [pid for pid in inside if Path(f"/proc/{pid}").exists()] == []
    assert not body.was_shut_down


def test_when_their_owner_is_killed_bodies_end_and_the_next_network_clears_up() -> None:
    require_bodies()
    code = """
import time
from tests.bodies import Body, Boot, Network
network = Network()
body = Body(network, Boot(hostname="b", user_data="sleep 985"))
print(network.slot, flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", code]
    owner = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert owner.stdout is not None
    slot = int(owner.stdout.readline())
    inside = [process.pid for process in descendants([owner.pid])]

    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()

    wait_until(lambda: not [pid for pid in inside if Path(f"/proc/{pid}").exists()], "the end")
    assert len(inside) >= 2
    Network().close()
    assert slot not in _used_slots()

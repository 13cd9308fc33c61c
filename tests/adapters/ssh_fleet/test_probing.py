"""A look at a host, over a real OpenSSH server."""

from __future__ import annotations

import platform
import socket
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ssh_fleet import Look, Ssh, node_ports, probe
from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.adapters.ssh_fleet.probing import listening
from hybrid.adapters.ssh_fleet.refusals import RemoteFailedError
from hybrid.adapters.ssh_fleet.transport import Program, own_program
from tests.sshd.network import Network
from tests.sshd.ray import interpreter, nvidia_smi
from tests.sshd.server import Server

pytestmark = pytest.mark.slow

CARDS = (("GPU-1", "NVIDIA GeForce RTX 3070", 8192), ("GPU-2", "Tesla V100-SXM2-32GB", 32768))


class OffClock(SystemClock):
    """Ten minutes slow."""

    def now_s(self) -> float:
        return super().now_s() - 600


def look_at(ssh: Ssh, server: Server, look: Look | None = None, **more: Any) -> Facts:
    to = server.to(more.pop("python", "python3"))
    clock = more.pop("clock", SystemClock())
    return probe(ssh, to, look or Look("127.0.0.1"), limit_s=30, clock=clock)


def test_a_host_tells_what_it_is(ssh: Ssh, server: Server) -> None:
    found = look_at(ssh, server, python=sys.executable)

    assert found.hostname == socket.gethostname()
    assert found.home == str(server.home)
    assert found.python == sys.executable
    assert found.python_version == platform.python_version()
    assert found.ray_version == version("ray")
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found.node_ip == "127.0.0.1"
    assert set(found.disk_free_bytes) == {str(server.home), "/tmp"}
    assert abs(found.clock_ahead_s or 99) < 2


def test_a_look_leaves_nothing_there(ssh: Ssh, server: Server) -> None:
    look_at(ssh, server)

    assert list(server.home.iterdir()) == []


def test_the_version_of_ray_is_that_of_the_configured_interpreter(ssh: Ssh, server: Server) -> None:
    python = interpreter(server.home / "ray", "2.60.1")

    found = look_at(ssh, server, python="~/ray/bin/python")

    assert (found.python, found.ray_version) == (python, "2.60.1")
    assert look_at(ssh, server, python=interpreter(server.home / "no", "")).ray_version == ""


def test_cards_of_any_kind_are_listed_with_driver_and_cuda(ssh: Ssh, server: Server) -> None:
    server.tool("nvidia-smi", nvidia_smi(*CARDS))

    gpus = look_at(ssh, server).gpus

    assert [gpu.accelerator for gpu in gpus.found] == ["RTX-3070", "V100-32GB"]
    assert {gpu.driver for gpu in gpus.found} == {"570.86.15"}
    assert gpus.cuda == "12.8"


def test_a_card_that_shares_the_memory_of_the_machine_has_none_of_its_own(
    ssh: Ssh, server: Server
) -> None:
    server.tool("nvidia-smi", nvidia_smi(("GPU-1", "NVIDIA GB10", 0)).replace(", 0,", ", [N/A],"))

    assert look_at(ssh, server).gpus.found[0].memory_mib is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not talk'; exit 9\n", "failed"),
        ("#!/bin/sh\necho 'No devices were found'\n", "No devices were found"),
        ("#!/no/such/shell\n", "cannot be run"),
    ],
    ids=["driver-does-not-answer", "no-devices", "broken-program"],
)
def test_a_driver_that_does_not_work_is_told(
    ssh: Ssh, server: Server, text: str, words: str
) -> None:
    server.tool("nvidia-smi", text)

    gpus = look_at(ssh, server).gpus

    assert gpus.found == ()
    assert words in gpus.problem


def test_a_driver_that_hangs_does_not_hang_us(
    ssh: Ssh, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = own_program("probe").source.replace("_DRIVER_S = 10.0", "_DRIVER_S = 0.2")
    hasty = Program("probe", source)
    monkeypatch.setattr("hybrid.adapters.ssh_fleet.probing.own_program", lambda _name: hasty)
    server.tool("nvidia-smi", "#!/bin/sh\nexec sleep 600\n")

    assert "did not answer in 0.2 s: the driver hangs" in look_at(ssh, server).gpus.problem


def test_disks_without_room_for_files_or_for_programs_are_told(ssh: Ssh, network: Network) -> None:
    machine = network.machine()
    machine.mount("--bind", "/tmp", "/tmp")
    machine.mount("-o", "remount,bind,noexec", "/tmp")
    machine.mount("-t", "tmpfs", "-o", "nr_inodes=50,mode=700", "tmpfs", machine.home)

    found = look_at(ssh, machine)

    assert found.files_free[str(machine.home)] < 50
    assert found.is_tmp_noexec
    assert found.is_tmp_writable


def test_a_clock_that_is_off_is_measured(ssh: Ssh, server: Server) -> None:
    ahead_s = look_at(ssh, server, clock=OffClock()).clock_ahead_s

    assert ahead_s == pytest.approx(600, abs=2)


def test_ports_are_tried_both_ways(ssh: Ssh, network: Network) -> None:
    machine = network.machine()
    with listening(network.address, {"gcs": 0, "controller": 0}) as there:
        look = Look(network.address, {**there, "none": (network.address, 9)}, node_ports(None))

        found = look_at(ssh, machine, look)

    assert found.dials == {"gcs": "", "controller": "", "none": "refused"}
    assert found.node_ip == machine.ip
    assert found.unopened == ()
    assert found.unreached == {}


def test_ports_behind_a_wall_are_told(ssh: Ssh, network: Network) -> None:
    machine = network.machine()
    # Its way to the head leaves from another address than the one that it answers to.
    silent = f"10.232.{network.slot}.250"
    machine.inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore")
    machine.inside("ip", "addr", "add", f"{silent}/32", "dev", "lo")
    machine.inside("ip", "route", "add", "192.0.2.5", "dev", "eth0", "src", silent)
    look = Look("192.0.2.5", {}, node_ports((30_000, 30_100)))

    found = look_at(ssh, machine, look)

    assert found.node_ip == silent
    assert set(found.unreached) == {"Ray's ports", "workers' ports"}


def test_a_port_that_another_program_has_is_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with listening("127.0.0.1", {"gcs": port, "controller": 0}) as there:
            assert list(there) == ["controller"]


def test_words_that_are_not_facts_are_told(ssh: Ssh, server: Server) -> None:
    liar = '#!/bin/sh\ncat >/dev/null\necho \'@hybrid {"kind": "answer", "content": {}}\'\n'
    server.tool("python3", liar)

    with pytest.raises(RemoteFailedError, match=r"in words that we do not know: os: Field"):
        look_at(ssh, server)


def test_mig_devices_are_told_with_the_card_that_they_are_of(ssh: Ssh, server: Server) -> None:
    cards = nvidia_smi(
        ("GPU-1", "NVIDIA A100-SXM4-80GB", 81920), ("GPU-2", "NVIDIA A100-SXM4-80GB", 81920)
    )
    parts = """\
#!/bin/sh
case "$*" in
*mig.mode.current*) printf 'GPU-1, Enabled\\nGPU-2, Disabled\\n'; exit ;;
-L) cat <<'END'
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)
  MIG 3g.40gb     Device  0: (UUID: MIG-c7384736)
  MIG 1g.10gb     Device  1: (UUID: MIG-GPU-1/7/0)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)
END
exit ;;
esac
"""
    server.tool("nvidia-smi", cards.replace("#!/bin/sh\n", parts))
    server.tool("nvidia-cuda-mps-control", "#!/bin/sh\n")

    gpus = look_at(ssh, server).gpus

    assert [gpu.is_mig_on for gpu in gpus.found] == [True, False]
    assert [(p.profile, p.uuid) for p in gpus.found[0].parts] == [
        ("3g.40gb", "MIG-c7384736"),
        ("1g.10gb", "MIG-GPU-1/7/0"),
    ]
    assert gpus.found[1].parts == ()
    assert gpus.mps.endswith("/nvidia-cuda-mps-control")


def test_a_driver_from_before_mig_has_none(ssh: Ssh, server: Server) -> None:
    words = 'Field "mig.mode.current" is not valid'
    old = f"#!/bin/sh\ncase \"$*\" in *mig*) echo '{words}'; exit 2 ;; esac\n"
    server.tool("nvidia-smi", nvidia_smi(*CARDS).replace("#!/bin/sh\n", old))

    assert [gpu.is_mig_on for gpu in look_at(ssh, server).gpus.found] == [False, False]

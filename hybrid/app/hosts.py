"""The hosts over SSH, from the settings: for the base that starts them, and for a survey."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ssh_fleet import (
    Destination,
    Look,
    Records,
    Site,
    Ssh,
    SshError,
    SshFleet,
    SshHost,
    SshSettings,
    Wanted,
    node_ports,
    probe,
)
from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.adapters.ssh_fleet.judging import Finding, judge, reached, unjudged
from hybrid.adapters.ssh_fleet.probing import listening
from hybrid.adapters.ssh_fleet.records import FOLDER
from hybrid.adapters.ssh_fleet.twins import twins
from hybrid.core.nodeplan import NodePlan
from hybrid.settings import Settings
from hybrid.settings.machines import Host

_SURVEY_S = 30.0
_AT_ONCE = 32
_GCS, _CONTROLLER = "gcs", "controller"


@dataclass(frozen=True)
class Ports:
    """Where the head and the controller listen.

    Attributes:
        gcs, controller: Their ports; 0 for one that is not chosen yet.
        is_up: They run, so that somebody answers there.
    """

    gcs: int
    controller: int
    is_up: bool


@dataclass(frozen=True)
class Survey:
    """What was found at one host."""

    host: str
    address: str
    findings: tuple[Finding, ...]


def make_fleet(
    settings: Settings,
    plans: Mapping[str, NodePlan],
    *,
    cluster_id: str,
    ray_token: str,
    state_dir: Path,
    ray_dir: Path,
) -> SshFleet:
    """Return the fleet of all hosts over SSH; starts nothing.

    Args:
        settings: The configuration.
        plans: How each of them is started.
        cluster_id: First part of the mark of their processes.
        ray_token: The cluster's.
        state_dir: The cluster's state folder.
        ray_dir: Short folder of this cluster for sockets.
    """
    clock = SystemClock()
    gcs = next((plan.head_address for plan in plans.values()), "")
    host, _, port = gcs.rpartition(":")
    dial = {_GCS: (host.strip("[]"), int(port))} if gcs else {}
    site = Site(
        cluster_id=cluster_id,
        ray_token=lambda: ray_token,
        look=Look(settings.head.node_ip, dial),
        ssh=Ssh(ray_dir / "ssh", _ssh_settings(settings), clock),
        records=Records(state_dir / FOLDER),
        clock=clock,
    )
    there = {host.name: host for host in settings.onprem.hosts}
    return SshFleet(
        [
            SshHost(
                name, _destination(settings, host), plan, _wanted(settings, host, site.look.dial)
            )
            for name, plan in plans.items()
            for host in [there[name]]
        ],
        site,
    )


def survey(settings: Settings, ports: Ports, sockets: Path) -> list[Survey]:
    """Look at all hosts over SSH at the same time; changes nothing on them.

    Args:
        settings: The configuration.
        ports: Where the head and the controller listen, or would.
        sockets: Short folder of our own, removed by the caller.
    """
    hosts = [host for host in settings.onprem.hosts if not host.is_local]
    clock = SystemClock()
    ssh = Ssh(sockets, _ssh_settings(settings), clock)
    head_ip = settings.head.node_ip
    wanted_ports = {_GCS: ports.gcs, _CONTROLLER: ports.controller}
    there = {name: (head_ip, port) for name, port in wanted_ports.items() if port}
    workers = settings.ray.worker_ports
    listen = node_ports(None if workers is None else (workers.low, workers.high))
    stand_in = nullcontext(there) if ports.is_up else listening(head_ip, wanted_ports)
    with stand_in as dial, ThreadPoolExecutor(_AT_ONCE) as pool:
        look = Look(head_ip, dial, listen)

        def look_at(host: Host) -> Facts | SshError:
            try:
                to = _destination(settings, host)
                return probe(ssh, to, look, limit_s=_SURVEY_S, clock=clock)
            except SshError as error:
                return error

        found = dict(zip((h.name for h in hosts), pool.map(look_at, hosts), strict=True))
    ssh.close()
    twin_by_host = dict(twins({n: f for n, f in found.items() if isinstance(f, Facts)}))
    surveys = []
    for host in hosts:
        seen = found[host.name]
        if isinstance(seen, SshError):
            findings = tuple(unjudged(seen))
        else:
            wanted = _wanted(settings, host, dial)
            findings = (reached(seen), *judge(seen, wanted), twin_by_host[host.name])
        surveys.append(Survey(host.name, host.address, findings))
    return surveys


def _ssh_settings(settings: Settings) -> SshSettings:
    access = settings.onprem.ssh
    return SshSettings(
        options=access.options,
        config_file=str(Path(access.config).expanduser()) if access.config else "",
        connect_limit_s=access.connect_limit_s,
    )


def _destination(settings: Settings, host: Host) -> Destination:
    return Destination(host.address, host.python or settings.onprem.python)


def _wanted(settings: Settings, host: Host, dial: Mapping[str, tuple[str, int]]) -> Wanted:
    words = {_GCS: "Ray's head", _CONTROLLER: "the controller"}
    where = {name: f"{ip}:{port}" for name, (ip, port) in dial.items()}
    return Wanted(
        address=host.address,
        python_version=platform.python_version(),
        ray_version=version("ray"),
        python=host.python or settings.onprem.python,
        gpus=host.gpus,
        is_auto=host.accelerators == "auto",
        mps_clients=host.mps or 0,
        mig=host.mig or "",
        min_driver=settings.onprem.min_driver or "",
        min_cuda=settings.onprem.min_cuda or "",
        object_store_bytes=settings.ray.store_bytes(is_shared=False),
        ports={name: f"{word} {where.get(name, '')}".strip() for name, word in words.items()},
    )

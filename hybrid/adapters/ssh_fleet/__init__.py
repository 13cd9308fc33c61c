"""The on-prem hosts that are reached over the system's OpenSSH.

    fleet -> keeper (a thread for each host) -> host (its steps) -> transport -> ssh
What runs on a host is in `on_host`; what is decided about one is in `judging` and `choosing`.
"""

from __future__ import annotations

from hybrid.adapters.ssh_fleet.fleet import SshFleet
from hybrid.adapters.ssh_fleet.host import Site, SshHost
from hybrid.adapters.ssh_fleet.judging import CHECKS, Finding, Wanted, judge
from hybrid.adapters.ssh_fleet.probing import Look, node_ports, probe
from hybrid.adapters.ssh_fleet.records import Records
from hybrid.adapters.ssh_fleet.refusals import SshError
from hybrid.adapters.ssh_fleet.transport import Destination, Ssh, SshSettings

__all__ = [
    "CHECKS",
    "Destination",
    "Finding",
    "Look",
    "Records",
    "Site",
    "Ssh",
    "SshError",
    "SshFleet",
    "SshHost",
    "SshSettings",
    "Wanted",
    "judge",
    "node_ports",
    "probe",
]

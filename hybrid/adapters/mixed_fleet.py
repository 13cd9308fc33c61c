"""On-prem hosts of which some are processes of this machine and some are reached over SSH."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.adapters.local_fleet import LocalFleet
from hybrid.adapters.ssh_fleet import SshFleet
from hybrid.core.errors import FleetError
from hybrid.core.ports import HostStatus


class MixedFleet:
    """See `hybrid.core.ports.Fleet`.

    Args:
        order: The names of all hosts, in the order of the configuration.
        local: Has the hosts of this machine, and answers for names that nobody has.
        ssh: Has all others.
    """

    def __init__(self, order: Sequence[str], local: LocalFleet, ssh: SshFleet) -> None:
        self._order = tuple(order)
        self._local = local
        self._ssh = ssh

    def hosts(self) -> Sequence[str]:
        """See `Fleet.hosts`."""
        return self._order

    def join(self, host: str) -> None:
        """See `Fleet.join`."""
        self._of(host).join(host)

    def leave(self, host: str) -> None:
        """See `Fleet.leave`."""
        self._of(host).leave(host)

    def probe(self, host: str) -> HostStatus:
        """See `Fleet.probe`."""
        return self._of(host).probe(host)

    def leave_removed(self) -> list[str]:
        """End the hosts that an earlier configuration had; return their names.

        Raises:
            FleetError: One of them may still run.
        """
        names, problems = [], []
        for fleet in (self._local, self._ssh):
            try:
                names += fleet.leave_removed()
            except FleetError as error:
                problems.append(str(error))
        if problems:
            raise FleetError("; ".join(problems))
        return names

    def close(self) -> None:
        """End what looks after hosts from here; the hosts' nodes go on."""
        self._ssh.close()

    def _of(self, host: str) -> LocalFleet | SshFleet:
        return self._ssh if host in self._ssh.hosts() else self._local

"""The on-prem hosts that are reached over SSH."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hybrid.adapters.ssh_fleet.host import Site, SshHost, end_node
from hybrid.adapters.ssh_fleet.keeper import Keeper
from hybrid.adapters.ssh_fleet.records import Record
from hybrid.core.errors import FleetError
from hybrid.core.ports import HostStatus

_AT_ONCE = 16


class SshFleet:
    """See `hybrid.core.ports.Fleet`.

    `join` and `probe` return at once: each host has a thread, so hosts join at the same time and
    one that does not answer holds nobody up. `leave` waits.
    """

    def __init__(self, hosts: Sequence[SshHost], site: Site) -> None:
        self._site = site
        self._keepers = {host.name: Keeper(host, site) for host in hosts}

    def hosts(self) -> Sequence[str]:
        """See `Fleet.hosts`."""
        return tuple(self._keepers)

    def join(self, host: str) -> None:
        """See `Fleet.join`. Why it could not be is told by `probe`."""
        self._known(host).join()

    def leave(self, host: str) -> None:
        """See `Fleet.leave`. A host that never joined is not even called."""
        self._known(host).leave()

    def probe(self, host: str) -> HostStatus:
        """See `Fleet.probe`. `JOINED` means that Ray has started, not that the head agrees."""
        return self._known(host).status

    def removed_hosts(self) -> list[str]:
        """Return hosts that an earlier configuration had and that may have a node of ours.

        Raises:
            FleetError: It cannot be told.
        """
        return list(self._removed())

    def leave_removed(self) -> list[str]:
        """End the nodes of hosts that an earlier configuration had; return their names.

        Raises:
            FleetError: One of them may still run.
        """
        removed = self._removed()
        if not removed:
            return []
        with ThreadPoolExecutor(min(len(removed), _AT_ONCE)) as pool:
            problems = [
                why for why in pool.map(self._leave_removed, removed, removed.values()) if why
            ]
        if problems:
            raise FleetError("; ".join(problems))
        return list(removed)

    def _leave_removed(self, name: str, record: Record) -> str:
        try:
            end_node(self._site, name, record)
        except FleetError as error:
            return (
                f"host {name}, which is no longer configured, may still run its node: {error}. If "
                f"that machine is gone for good, remove {self._site.records.path(name)}"
            )
        return ""

    def close(self) -> None:
        """End threads and connections; the nodes go on."""
        for keeper in self._keepers.values():
            keeper.close()
        self._site.ssh.close()

    def _removed(self) -> dict[str, Record]:
        found = self._site.records.read()
        return {name: record for name, record in found.items() if name not in self._keepers}

    def _known(self, host: str) -> Keeper:
        keeper = self._keepers.get(host)
        if keeper is None:
            names = ", ".join(self._keepers) or "none"
            raise FleetError(f"there is no host {host!r}; hosts of this cluster: {names}")
        return keeper

"""On-prem hosts with `address: local`: Ray nodes on this machine that count as your own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybrid.adapters.local_node import LocalNode
from hybrid.core.bootstrap import NodePlan, ray_node_command, ray_node_environment
from hybrid.core.errors import ConfigError, FleetError
from hybrid.core.ports import HostState, HostStatus
from hybrid.node.folder import BadFolderError, Folder, Phase
from hybrid.node.stopping import leftovers

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_RESERVED = "head"


class LocalFleet:
    """See `hybrid.core.ports.Fleet`.

    Args:
        folder: Holds one folder for each host.
        plans: What to start, by the host's name, in order.
        cluster_id: First part of the mark of the hosts' processes.
        ray_token_file: Holds the cluster's Ray token.
        ports: First and last port that may be chosen; `None` for the node program's own range.
    """

    def __init__(
        self,
        folder: Path,
        plans: Mapping[str, NodePlan],
        *,
        cluster_id: str,
        ray_token_file: Path,
        ports: tuple[int, int] | None = None,
    ) -> None:
        self._folder = folder
        self._cluster_id = cluster_id
        self._ray_token_file = ray_token_file
        self._ports = ports
        self._plans = dict(plans)
        self._nodes = {name: self._node(name, plan) for name, plan in plans.items()}

    def hosts(self) -> Sequence[str]:
        """See `Fleet.hosts`."""
        return tuple(self._plans)

    def join(self, host: str) -> None:
        """See `Fleet.join`. A host that runs already is left as it is, work and all."""
        self._known(host).start()

    def leave(self, host: str) -> None:
        """See `Fleet.leave`."""
        self._known(host).stop()

    def probe(self, host: str) -> HostStatus:
        """See `Fleet.probe`. `JOINED` means that Ray has started, not that the head agrees."""
        node = self._known(host)
        phase, problem = node.phase(), node.problem()
        if phase is not None:
            state = HostState.JOINED if phase is Phase.RUNNING else HostState.JOINING
        else:
            state = HostState.FAILED if problem else HostState.ABSENT
        shape = self._plans[host].resources
        return HostStatus(host=host, state=state, shape=shape, problem=problem, pids=node.pids())

    def removed_hosts(self) -> list[str]:
        """Return hosts that an earlier configuration had and that still have processes.

        Raises:
            FleetError: The folder cannot be read.
        """
        try:
            with_orders = sorted(path.parent for path in self._folder.glob("*/node.json"))
            names = [path.name for path in with_orders]
            strange = [name for name in names if name != _RESERVED and name not in self._plans]
            return [name for name in strange if leftovers(self._folder / name)]
        except (OSError, BadFolderError) as err:
            raise FleetError(f"cannot tell which hosts run: {err}") from err

    def leave_removed(self) -> list[str]:
        """End the hosts that an earlier configuration had; return their names.

        Raises:
            FleetError: One of them may still run.
        """
        names = self.removed_hosts()
        for name in names:
            tag = Folder(self._folder / name).tag()
            cluster_id, _, node_id = tag.partition("/")
            orders = {"cluster_id": cluster_id, "id": node_id}
            LocalNode(f"host {name}", self._folder / name, orders).stop()
        return names

    def _known(self, host: str) -> LocalNode:
        node = self._nodes.get(host)
        if node is None:
            names = ", ".join(self._plans) or "none"
            raise FleetError(f"there is no host {host!r}; hosts of this cluster: {names}")
        return node

    def _node(self, name: str, plan: NodePlan) -> LocalNode:
        if not _NAME.fullmatch(name) or ".." in name or name == _RESERVED:
            raise ConfigError(f"{name!r} cannot be the name of a host: it becomes a folder's name")
        orders = {
            "id": name,
            "cluster_id": self._cluster_id,
            "role": "host",
            "command": ray_node_command(plan),
            "env": ray_node_environment(plan),
            "temp_dir": plan.temp_dir,
            "ray_token_file": str(self._ray_token_file),
            "ports": None if self._ports is None else list(self._ports),
        }
        return LocalNode(f"host {name}", self._folder / name, orders)

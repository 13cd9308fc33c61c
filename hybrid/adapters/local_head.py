"""The Ray head on this machine."""

from __future__ import annotations

from pathlib import Path

from hybrid.adapters.local_node import LocalNode
from hybrid.core.bootstrap import HeadPlan, ray_head_command, ray_head_environment
from hybrid.core.errors import FleetError
from hybrid.node.holders import holder
from hybrid.node.ports import is_free

_SETTINGS = {"gcs": "head.port", "dashboard": "head.dashboard_port", "client": "head.client_port"}


class LocalHead:
    """Starts and ends the head. It outlives the controller; the next one finds it again.

    Args:
        folder: Its own folder; ports that were chosen for it are remembered there.
        plan: What to start; `auto` ports are chosen at the first start and kept if possible.
        cluster_id: First part of the mark of its processes.
        ray_token_file: Holds the cluster's Ray token.
        ports: First and last port that may be chosen; `None` for the node program's own range.
        host: Address of this machine for nodes that connect to the head.
    """

    def __init__(
        self,
        folder: Path,
        plan: HeadPlan,
        *,
        cluster_id: str,
        ray_token_file: Path,
        ports: tuple[int, int] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._fixed = {
            name: port
            for name, port in {
                "gcs": plan.port,
                "dashboard": plan.dashboard_port,
                "client": plan.client_port,
            }.items()
            if isinstance(port, int)
        }
        self._host = host
        self._dashboard_host = plan.dashboard_host
        self._node = LocalNode(
            "the Ray head",
            folder,
            {
                "id": "head",
                "cluster_id": cluster_id,
                "role": "head",
                "command": ray_head_command(plan),
                "env": ray_head_environment(plan),
                "temp_dir": plan.temp_dir,
                "ray_token_file": str(ray_token_file),
                "ports": None if ports is None else list(ports),
            },
        )

    def start(self) -> None:
        """Start it unless it runs; returns before Ray answers, but its ports are known then.

        Raises:
            FleetError: A port of the configuration is taken, or it did not start.
        """
        if self.is_alive():
            return
        self._node.stop()  # an old head of ours may hold the ports
        for name, port in self._fixed.items():
            if not is_free(port):
                raise FleetError(_taken(name, port))
        self._node.start()

    def stop(self) -> None:
        """End it and everything it started. Raises `FleetError`."""
        self._node.stop()

    def is_alive(self) -> bool:
        """Return whether it runs or is about to."""
        return self._node.phase() is not None

    def problem(self) -> str:
        """Return why it does not run, or `""`."""
        return self._node.problem()

    @property
    def address(self) -> str:
        """Where nodes join: `host:port`. Raises `FleetError` before the first start."""
        return f"{_bracketed(self._host)}:{self._port('gcs')}"

    @property
    def dashboard_url(self) -> str:
        """Ray's dashboard and jobs API. Raises `FleetError` before the first start."""
        return f"http://{_bracketed(self._dashboard_host)}:{self._port('dashboard')}"

    def _port(self, name: str) -> int:
        port = self._fixed.get(name) or self._node.ports.get(name)
        if port is None:
            raise FleetError(f"{_SETTINGS[name]} is auto and not chosen yet; start the head first")
        return port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _taken(name: str, port: int) -> str:
    setting = _SETTINGS[name]
    by = holder(port)
    who = by or "a process of another user, or one that cannot be seen from here"
    end = f"end it with `hybrid down -c {by.cluster}`" if by and by.cluster else "end that process"
    return (
        f"{setting}: port {port} is taken by {who}; "
        f"set {setting} to another port or to auto, or {end}"
    )

"""The head and the on-prem hosts, startable before anything heavy is imported."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from hybrid.adapters.local_fleet import LocalFleet
from hybrid.adapters.local_head import LocalHead
from hybrid.adapters.mixed_fleet import MixedFleet
from hybrid.adapters.state import StateFolder
from hybrid.app import hosts
from hybrid.app.translate import ray_options
from hybrid.core.errors import ConfigError, FleetError
from hybrid.core.models import Labels, Shape
from hybrid.core.nodeplan import HeadPlan, NodePlan
from hybrid.settings import Settings
from hybrid.settings.machines import Head, Host

_NOWHERE = "127.0.0.1:9"
_HEAD_LABELS = {"site": "onprem", "role": "head", "provider": "onprem"}


class LocalBase:
    """Head and hosts, from the settings.

    Attributes:
        ray_dir: Folder of Ray's own folders: short, since sockets below it have a limit of 107
            bytes, and the same for the next controller.
        is_started_here: This process started the head, so it must end it if it fails.
    """

    def __init__(self, settings: Settings, state: StateFolder) -> None:
        mark = hashlib.sha256(str(state.path).encode()).hexdigest()[:8]
        self._settings = settings
        self._mark = mark
        self._state_dir = state.path
        self._nodes = state.path / "nodes"
        self._token_file = state.path / "ray_token"
        self.ray_token = state.secret("ray_token")
        self.ray_dir = Path(f"/tmp/hybrid-{os.getuid()}") / mark  # noqa: S108 - see above
        self.is_started_here = False
        self.head = LocalHead(
            self._nodes / "head",
            head_plan(settings, self.ray_dir),
            cluster_id=mark,
            ray_token_file=self._token_file,
            host=settings.head.node_ip or "127.0.0.1",
        )
        self._look()

    def start(self) -> None:
        """Start what is down, the head and the hosts at the same moment.

        Raises:
            ConfigError: The head cannot be started with this configuration.
        """
        self.is_started_here = not self.head.is_alive()
        try:
            self.head.start()
        except FleetError as error:
            raise ConfigError(str(error)) from error
        # The head's ports are known from here on, though it does not answer yet.
        self._look()
        self.stop_removed()
        for host in self.fleet.hosts():
            with suppress(FleetError):  # the loop says so and tries again
                self.fleet.join(host)

    def stop(self) -> list[str]:
        """End hosts, then the head; return what could not be ended, in words."""
        left = []
        for name in self.fleet.hosts():
            try:
                self.fleet.leave(name)
            except FleetError as error:
                left.append(str(error))
        left += self.stop_removed()
        try:
            self.head.stop()
        except FleetError as error:
            left.append(str(error))
        if not left:
            self.clean()
        return left

    def stop_removed(self) -> list[str]:
        """End hosts that the configuration no longer has; return what could not be ended."""
        try:
            self.fleet.leave_removed()
        except FleetError as error:
            return [str(error)]
        return []

    def _look(self) -> None:
        """Find out where the head is, and plan the hosts accordingly."""
        try:
            self.head_address = self.head.address
            self.dashboard_url = self.head.dashboard_url
        except FleetError:
            # It has never been started: nobody answers there, which is the truth.
            self.head_address, self.dashboard_url = _NOWHERE, f"http://{_NOWHERE}"
        plans = host_plans(self._settings, self.ray_dir, self.head_address)
        here = {host.name for host in self._settings.onprem.hosts if host.is_local}
        local = LocalFleet(
            self._nodes,
            {name: plan for name, plan in plans.items() if name in here},
            cluster_id=self._mark,
            ray_token_file=self._token_file,
        )
        ssh = hosts.make_fleet(
            self._settings,
            {name: plan for name, plan in plans.items() if name not in here},
            cluster_id=self._mark,
            ray_token=self.ray_token,
            state_dir=self._state_dir,
            ray_dir=self.ray_dir,
        )
        self.fleet = MixedFleet(list(plans), local, ssh)
        self.shapes: dict[str, Shape] = {name: plan.resources for name, plan in plans.items()}
        self.labels: dict[str, Labels] = {name: plan.labels for name, plan in plans.items()}

    def clean(self) -> None:
        """Remove Ray's folders, which hold nothing once its processes have ended."""
        self.fleet.close()
        shutil.rmtree(self.ray_dir, ignore_errors=True)


def head_plan(settings: Settings, ray_dir: Path) -> HeadPlan:
    """Return how the head is started."""
    head = settings.head
    return HeadPlan(
        python=sys.executable,
        temp_dir=str(ray_dir / "head"),
        resources=head_shape(head),
        labels=head_labels(),
        port=head.port,
        node_ip=head.node_ip,
        dashboard_port=head.dashboard_port,
        client_port=head.client_port,
        **dict(ray_options(settings, is_shared=True)),
    )


def host_plans(settings: Settings, ray_dir: Path, head_address: str) -> dict[str, NodePlan]:
    """Return how each on-prem host is started, by its name."""
    plans = {}
    for host in settings.onprem.hosts:
        short = hashlib.sha256(host.name.encode()).hexdigest()[:8]
        plans[host.name] = NodePlan(
            python=sys.executable,
            temp_dir=str(ray_dir / short),
            resources=host_shape(host),
            labels=host_labels(host),
            head_address=head_address,
            **dict(ray_options(settings, is_shared=host.is_local)),
            are_gpus_logical=True,
        )
    return plans


def head_shape(head: Head) -> dict[str, float]:
    """Return what work may use on the head, as far as the configuration says."""
    return _resources(head.cpus, head.gpus, head.memory_bytes, "")


def head_labels() -> dict[str, str]:
    """Return the labels of the head."""
    return dict(_HEAD_LABELS)


def host_shape(host: Host) -> dict[str, float]:
    """Return what work may use on a host, as far as the configuration says."""
    return _resources(host.cpus, host.gpu_count, host.memory_bytes, _accelerator(host))


def host_labels(host: Host) -> dict[str, str]:
    """Return the labels of a host."""
    accelerator = _accelerator(host)
    return {
        "site": "onprem",
        "provider": "onprem",
        "host": host.name,
        "hybrid-host": host.name,
        **({"accelerator": accelerator} if accelerator else {}),
        **host.labels,
    }


def _accelerator(host: Host) -> str:
    return host.gpus.accelerator if host.gpus else ""


def _resources(
    cpus: int | None, gpus: int | None, memory_bytes: int | None, accelerator: str
) -> dict[str, float]:
    resources: dict[str, float] = {} if gpus is None else {"GPU": gpus}
    if cpus is not None:
        resources["CPU"] = cpus
    if memory_bytes is not None:
        resources["memory"] = memory_bytes
    if accelerator and gpus:
        # As Ray does on a machine with such GPUs: tasks ask for a share of it.
        resources[f"accelerator_type:{accelerator}"] = 1
    return resources

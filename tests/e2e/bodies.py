"""A cluster that rents in emulated clouds whose machines boot, join and work."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hybrid.core.models import Instance
from hybrid.node.environment import TAG
from hybrid.node.processes import environment, find_all
from tests.bodies import Body, Hypervisor, Network, require_bodies, side_of
from tests.e2e.clouds import CloudDeployment, Clouds, emulated

MAX_NODES = 2


class BodyDeployment(CloudDeployment):
    """A cluster in clouds with bodies.

    Attributes:
        network: What the bodies hang on.
        hypervisors: By the names of their clouds.
    """

    def __init__(self, clouds: Clouds, network: Network, names: Sequence[str]) -> None:
        self.network = network
        self.names = names
        self.hypervisors: dict[str, Hypervisor] = {}
        super().__init__(clouds)

    def begin(self, **changes: Any) -> None:
        """Write the configuration, switch the hypervisors on, and start the cluster."""
        self.configure(**self.settings(**changes))
        for name in self.names:
            side = side_of(self.emulated.by_name[name])
            # As a network file system: seen by all machines at one path.
            self.hypervisors[name] = Hypervisor(self.network, side, kept=[self.gate])
        self.up()

    def settings(
        self, *, spot: Collection[str] = (), anywhere: Collection[str] = (), **changes: Any
    ) -> dict[str, Any]:
        """Return a configuration with a pool in each cloud, and `changes`.

        Args:
            spot: Clouds to rent in on the spot market.
            anywhere: Clouds to rent in without saying in which zone.
            changes: Other sections.
        """
        pools = []
        for name in self.names:
            cloud = self.emulated.by_name[name]
            pool = cloud.pool(cloud.zones[0])
            if name in anywhere:
                pool["infra"] = pool["infra"].rpartition("/")[0]
            pools.append({**pool, "max_nodes": MAX_NODES, "use_spot": name in spot})
        config = self.emulated.config(pools)
        accounts = {n: {**a, "python": sys.executable} for n, a in config["providers"].items()}
        return {
            **config,
            "providers": accounts,
            "head": {"address": self.network.address, "client_port": "off", "cpus": 0},
            **changes,
        }

    # --- bodies ---------------------------------------------------------------------------

    def bodies(self) -> dict[str, Body]:
        """Return all bodies that ever were, by the clouds' own ids."""
        return {i: body for h in self.hypervisors.values() for i, body in h.bodies.items()}

    def on(self) -> dict[str, Body]:
        """Return the bodies that are on."""
        return {i: body for i, body in self.bodies().items() if body.is_on}

    def body_of(self, row: Instance) -> Body:
        """Return the body of an instance."""
        return self.bodies()[row.provider_id.rpartition("/")[2]]

    def working(self) -> dict[str, Instance]:
        """Return the instances on which a task has started that still are, by cloud."""
        started = {facts["instance_id"] for facts in self.started()}
        return {r.offer.provider: r for r in self.live_rows() if r.instance_id in started}

    def provider_of(self, hostname: str) -> str:
        """Return the cloud that a body of this name is in; `""` for none."""
        found = (name for name, h in self.hypervisors.items() if hostname in h.bodies)
        return next(found, "")

    # --- the end --------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """See `Deployment.processes`; with those of the bodies."""
        found = super().processes()
        for body in self.on().values():
            found |= dict.fromkeys(body.pids(), f"in body {body.boot.hostname}")
        return found

    def assert_clean(self) -> None:
        """Assert that the clouds are empty, and that of the bodies nothing is left here."""
        assert {h.problem for h in self.hypervisors.values()} <= {""}
        assert self.emulated.machines() == {}
        self.wait_until(lambda: not self.on(), "all bodies to be off")
        self.wait_until(lambda: not self.network.cables(), "all cables to be gone")
        marks = {f"{TAG}={row.spec.cluster_id}/{row.instance_id}".encode() for row in self.rows()}
        assert [pid for pid in find_all() if marks & set(environment(pid))] == []

    def assert_launched_once(self) -> None:
        """Assert that every machine that ever ran is the one of its row, and of no other."""
        rows = [row for row in self.rows() if row.provider_id]
        names = [row.provider_id.rpartition("/")[2] for row in rows]
        assert set(self.bodies()) <= set(names)
        assert len(names) == len(set(names))

    def story(self) -> str:
        """See `Deployment.story`; with those of the bodies."""
        return "\n".join([super().story(), *(body.story() for body in self.bodies().values())])

    def close(self) -> None:
        """See `Deployment.close`."""
        for hypervisor in self.hypervisors.values():
            hypervisor.close()
        super().close()


@contextmanager
def embodied(*names: str) -> Iterator[BodyDeployment]:
    """Yield a cluster in some clouds that is not started; afterwards nothing of it is left."""
    require_bodies()
    with ExitStack() as stack:
        clouds = stack.enter_context(emulated())
        network = Network()
        stack.callback(network.close)
        deployment = BodyDeployment(clouds, network, names)
        try:
            yield deployment
            deployment.down()
            deployment.assert_clean()
            deployment.assert_launched_once()
            deployment.assert_nothing_left()
        finally:
            deployment.close()
    assert_gone(network)


def assert_gone(network: Network) -> None:
    """Assert that this machine has nothing of a network any more."""
    assert network.links() == []
    assert not network.folder.exists()
    place = os.fsencode(network.folder)
    words = (Path(f"/proc/{pid}/cmdline") for pid in find_all())
    assert [w for w in words if w.exists() and place + b"/" in w.read_bytes()] == []


def labels_of(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return where a task says that it ran: its instance, and the name of its machine."""
    return str(facts["instance_id"]), str(facts["hostname"])

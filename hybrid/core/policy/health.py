"""Whether so much looks dead at once that we may be the ones who see wrongly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hybrid.core.models import Instance, InstanceState, Node, NodeStatus

_S = InstanceState


@dataclass(frozen=True)
class Health:
    """What should be nodes and is not.

    Attributes:
        bad: Names of hosts and ids of instances that look dead.
        count: All that should be nodes.
    """

    bad: tuple[str, ...] = ()
    count: int = 0

    def is_mass_trouble(self, unhealthy_ratio: float) -> bool:
        """Return whether more than such a share looks dead. One alone never is."""
        return len(self.bad) > 1 and len(self.bad) > unhealthy_ratio * self.count


def health_of(nodes: Iterable[Node], hosts: Iterable[str], instances: Iterable[Instance]) -> Health:
    """Return the health of all that should be nodes.

    Counts hosts that were nodes once, and rented instances that should be nodes: those that
    run, and those given up as dead that the cloud has not ended yet. Ray lists dead nodes for
    long, so a node that came back is judged by its living entry.
    """
    nodes = tuple(nodes)
    dead = {n.host for n in nodes if n.status is NodeStatus.DEAD}
    alive = {n.host for n in nodes if n.status is not NodeStatus.DEAD}
    known = [name for name in hosts if name in dead | alive]
    bad = [name for name in known if name not in alive]
    working = {n.instance_id for n in nodes if n.status is not NodeStatus.DEAD}
    rented = [i.instance_id for i in instances if _should_be_node(i)]
    bad += [instance_id for instance_id in rented if instance_id not in working]
    return Health(tuple(bad), len(known) + len(rented))


def _should_be_node(instance: Instance) -> bool:
    """Return whether an instance is meant to be a node, or ended without being asked to."""
    has_died = instance.state in (_S.TERMINATING, _S.LOST) and instance.joined_at_s is not None
    return instance.state is _S.RUNNING or (has_died and not instance.drain_kind)

"""What a baseline reads out of a snapshot: the queue, home, and the rented nodes."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.models import InstanceState, Node, Offer
from hybrid.core.models.work import JobView
from hybrid.core.policy.plan import Snapshot


@dataclass(frozen=True, slots=True)
class Seen:
    """One look.

    Attributes:
        waiting: Jobs that do not run.
        ready: Rented nodes, in the order of their ids, which is that of their launches.
        coming_gpus: GPUs of each node that boots.
    """

    now_s: float
    waiting: tuple[JobView, ...]
    home: tuple[Node, ...]
    ready: tuple[Node, ...]
    coming_gpus: tuple[int, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Seen:
        """Read a snapshot."""
        ready = sorted((n for n in snapshot.nodes if n.instance_id), key=lambda n: n.node_id)
        return cls(
            now_s=snapshot.now_s,
            waiting=tuple([job for job in snapshot.jobs if not job.slots]),
            home=tuple([node for node in snapshot.nodes if not node.instance_id]),
            ready=tuple(ready),
            coming_gpus=tuple(
                i.offer.gpu_count
                for i in snapshot.instances
                if i.state is not InstanceState.RUNNING
            ),
        )

    @property
    def queued_gpus(self) -> float:
        """GPUs that all waiting jobs ask for."""
        return sum(job.gpus for job in self.waiting)

    @property
    def node_count(self) -> int:
        """Rented nodes, those that boot included."""
        return len(self.ready) + len(self.coming_gpus)

    def idle(self, *, for_s: float = 0.0) -> list[Node]:
        """Return the rented nodes without work for at least so long, the longest idle first."""
        nodes = [n for n in self.ready if n.idle_s is not None and n.idle_s >= for_s]
        return sorted(nodes, key=lambda n: (-(n.idle_s or 0.0), n.node_id))


def largest(offers: tuple[Offer, ...]) -> Offer:
    """Return the offer with the most GPUs: the only size of a pool of equal nodes."""
    return max(offers, key=lambda o: (o.gpu_count, -o.usd_per_hour))


def smallest(offers: tuple[Offer, ...], gpus: float) -> Offer | None:
    """Return the smallest offer that holds so many GPUs, the cheapest of those."""
    fitting = [offer for offer in offers if offer.gpu_count >= gpus]
    return min(fitting, key=lambda o: (o.gpu_count, o.usd_per_hour), default=None)


def gpus_free(nodes: tuple[Node, ...]) -> float:
    """Return the free GPUs of some nodes."""
    return sum([node.available["GPU"] for node in nodes])


def gpus_of(nodes: tuple[Node, ...]) -> float:
    """Return the GPUs of some nodes."""
    return sum([node.total["GPU"] for node in nodes])

"""Ray's autoscaler: nodes for what is pending, at once; back after a time without work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.models import Offer
from hybrid.core.policy.plan import Action, Snapshot
from hybrid.sim.baselines.acting import give_back, launch
from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.packing import job_sized, missing_nodes, pieces
from hybrid.sim.baselines.ray_packing import Room, rays_choice
from hybrid.sim.baselines.seen import Seen, smallest


@dataclass
class RayDemand(Baseline):
    """At each look, pending work is packed onto free and booting nodes, and nodes are added.

    Args:
        idle_after_s: Ray's `idle_timeout_minutes`, 300 s by default; 60 s is KubeRay's.
        is_packed: Choose nodes as Ray's own scheduler does, which fills large nodes with small
            jobs. Otherwise each piece gets the smallest node that holds it: cheaper, since a
            large node is kept by the last small job on it. Both are in the grid.
    """

    idle_after_s: float = 300.0
    is_packed: bool = False

    @property
    def name(self) -> str:
        """Its kind and time-out."""
        return f"ray(idle {self.idle_after_s:g} s{', packed' if self.is_packed else ''})"

    def scale(self, seen: Seen, snapshot: Snapshot) -> Sequence[Action]:
        """Return launches of the nodes that are missing, and ends of idle ones."""
        if self.is_packed:
            missing = _packed(seen, snapshot.offers)
        else:
            missing = missing_nodes(seen, job_sized(snapshot.offers), is_shared=True)
        idle = seen.idle(for_s=self.idle_after_s)
        return [
            *(launch(offer, "ray") for offer in missing),
            *(give_back(n.instance_id, seen.now_s, "ray", idle_s=n.idle_s or 0) for n in idle),
        ]


def _packed(seen: Seen, offers: tuple[Offer, ...]) -> list[Offer]:
    if not seen.waiting:
        return []
    there = [Room(n.total.get("GPU", 0.0), n.available.get("GPU", 0.0)) for n in seen.ready]
    there += [Room(float(gpus), float(gpus)) for gpus in seen.coming_gpus]
    sizes = sorted({float(offer.gpu_count) for offer in offers})
    chosen = (smallest(offers, size) for size in rays_choice(pieces(seen.waiting), there, sizes))
    return [offer for offer in chosen if offer is not None]

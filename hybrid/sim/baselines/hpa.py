"""Kubernetes' horizontal autoscaler on the use of all GPUs, home included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.policy.plan import Action, Snapshot
from hybrid.sim.baselines.acting import give_back, launch
from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.seen import Seen, gpus_free, gpus_of, largest
from hybrid.sim.baselines.window import Window

_TOLERANCE = 0.1
_LEAST_STEP = 4


@dataclass
class Hpa(Baseline):
    """Keeps (busy + queued) GPUs over (home + ready rented) GPUs near a target.

    `desired = ceil(current * ratio)`, nothing within 10 % of the target; nodes of one size; at
    most 4 more or twice as many at one look; down to the largest wish of the window, and only
    nodes without work go.

    Args:
        target: Use that it aims at, 0 to 1.
        stabilise_s: `downscale-stabilization`, 300 s by default.
    """

    target: float = 0.9
    stabilise_s: float = 300.0

    def __post_init__(self) -> None:
        """Begin with an empty window."""
        self._window = Window(self.stabilise_s)

    @property
    def name(self) -> str:
        """Its kind and how it is tuned."""
        return f"hpa(target {self.target:g}, window {self.stabilise_s:g} s)"

    def scale(self, seen: Seen, snapshot: Snapshot) -> Sequence[Action]:
        """Return launches up to the wish, or ends of idle nodes down to the window's."""
        offer = largest(snapshot.offers)
        wish = self.wished_nodes(seen, offer.gpu_count)
        most = self._window.largest(seen.now_s, wish)
        count = seen.node_count
        if wish > count:
            step = min(wish - count, max(_LEAST_STEP, count))
            return [launch(offer, "hpa", wished=wish) for _ in range(step)]
        excess = seen.idle()[: max(0, count - most)]
        return [give_back(n.instance_id, seen.now_s, "hpa", wished=most) for n in excess]

    def wished_nodes(self, seen: Seen, node_gpus: int) -> int:
        """Return how many rented nodes the rule asks for."""
        home, rented = gpus_of(seen.home), gpus_of(seen.ready)
        total = home + rented
        used = total - gpus_free(seen.home) - gpus_free(seen.ready) + seen.queued_gpus
        ratio = used / max(1.0, total) / self.target
        is_near = abs(ratio - 1) <= _TOLERANCE
        desired = total if is_near else math.ceil(total * ratio)
        return max(0, math.ceil((desired - home) / node_gpus))

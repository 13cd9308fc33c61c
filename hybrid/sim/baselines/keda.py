"""KEDA: nodes by the length of the queue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.policy.plan import Action, Snapshot
from hybrid.sim.baselines.acting import give_back, launch
from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.seen import Seen, largest
from hybrid.sim.baselines.window import Window


@dataclass
class Keda(Baseline):
    """Wishes for the nodes with work, and one for each `gpus_per_node` queued GPUs.

    It is asked every 30 s, KEDA's `pollingInterval`, as long as the simulated ticks are so long.

    Args:
        gpus_per_node: Queued GPUs that one more node stands for.
        cooldown_s: `cooldownPeriod`, 300 s by default: how long the largest wish holds.
    """

    gpus_per_node: float = 8.0
    cooldown_s: float = 300.0

    def __post_init__(self) -> None:
        """Begin with an empty window."""
        self._window = Window(self.cooldown_s)

    @property
    def name(self) -> str:
        """Its kind and how it is tuned."""
        return f"keda({self.gpus_per_node:g} GPUs a node, cooldown {self.cooldown_s:g} s)"

    def scale(self, seen: Seen, snapshot: Snapshot) -> Sequence[Action]:
        """Return launches up to the wish, or ends of idle nodes."""
        offer = largest(snapshot.offers)
        busy = sum(node.idle_s is None for node in seen.ready)
        wish = busy + math.ceil(seen.queued_gpus / self.gpus_per_node)
        most = self._window.largest(seen.now_s, wish)
        count = seen.node_count
        actions = [launch(offer, "keda", wished=wish) for _ in range(wish - count)]
        excess = seen.idle()[: max(0, count - most)]
        ends = (give_back(n.instance_id, seen.now_s, "keda", wished=most) for n in excess)
        return [*actions, *ends]

"""A threshold alarm as in cloud consoles: a step up when the queue stays long, one node down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.policy.plan import Action, Snapshot
from hybrid.sim.baselines.acting import give_back, launch
from hybrid.sim.baselines.base import Baseline
from hybrid.sim.baselines.seen import Seen, largest

_LOOKS = 2


@dataclass
class Reactive(Baseline):
    """Adds nodes when the queue was too long twice in a row; removes one when it is empty.

    Args:
        above_gpus: Queued GPUs that are too many when they are more than this.
        step_nodes: Nodes added at once.
        cooldown_s: Nothing more happens for so long after a change.
        idle_after_s: Only nodes without work for so long go.
    """

    above_gpus: float = 8.0
    step_nodes: int = 2
    cooldown_s: float = 300.0
    idle_after_s: float = 600.0

    def __post_init__(self) -> None:
        """Begin as if nothing had ever changed."""
        self._changed_at_s = -math.inf
        self._long_count = 0

    @property
    def name(self) -> str:
        """Its kind and how it is tuned."""
        return (
            f"reactive(above {self.above_gpus:g} GPUs, +{self.step_nodes}, "
            f"cooldown {self.cooldown_s:g} s)"
        )

    def scale(self, seen: Seen, snapshot: Snapshot) -> Sequence[Action]:
        """Return the step up, or the one node that goes."""
        queued = seen.queued_gpus
        self._long_count = self._long_count + 1 if queued > self.above_gpus else 0
        if seen.now_s - self._changed_at_s < self.cooldown_s:
            return ()
        if self._long_count >= _LOOKS:
            self._changed_at_s, self._long_count = seen.now_s, 0
            offer = largest(snapshot.offers)
            return [launch(offer, "reactive", queued=queued) for _ in range(self.step_nodes)]
        idle = seen.idle(for_s=self.idle_after_s) if queued == 0 else []
        if not idle:
            return ()
        self._changed_at_s = seen.now_s
        return [give_back(idle[0].instance_id, seen.now_s, "reactive", idle_s=idle[0].idle_s or 0)]

"""Follows the waiting work of recorded decisions: what came, and what left and so has started."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from hybrid.core.models import Demand
from hybrid.core.policy.plan import Snapshot


@dataclass(frozen=True)
class Started:
    """Work that no longer waits.

    Attributes:
        bundles: Whole GPUs of each part of it.
        submit_s: When it came, at the earliest: Ray tells no ages, so it is from counts.
        seen_s: When it was first seen not to wait.
    """

    bundles: tuple[int, ...]
    submit_s: float
    seen_s: float


@dataclass
class Waiting:
    """The queue, as it was at the last look."""

    _single: dict[int, deque[float]] = field(default_factory=dict)
    _gangs: dict[str, tuple[tuple[int, ...], float]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Requests and gangs that wait."""
        return sum(map(len, self._single.values())) + len(self._gangs)

    def look(self, snapshot: Snapshot) -> list[Started]:
        """Return what has left since the last look, the oldest first."""
        found = [*self._look_at_gangs(snapshot), *self._look_at_singles(snapshot)]
        return sorted(found, key=lambda each: each.submit_s)

    def _look_at_singles(self, snapshot: Snapshot) -> Iterator[Started]:
        now_s = snapshot.now_s
        seen: dict[int, tuple[int, float]] = {}
        for demand in snapshot.demands:
            if gpus := whole_gpus(demand):
                count, waited_s = seen.get(gpus, (0, 0.0))
                seen[gpus] = (count + demand.count, max(waited_s, demand.waiting_s or 0.0))
        for gpus in {*seen, *self._single}:
            count, waited_s = seen.get(gpus, (0, 0.0))
            line = self._single.setdefault(gpus, deque())
            while len(line) > count:
                yield Started((gpus,), line.popleft(), now_s)
            # The age is that of the oldest, and the others have come since the last look.
            for _ in range(count - len(line)):
                line.append(now_s if line else now_s - waited_s)

    def _look_at_gangs(self, snapshot: Snapshot) -> Iterator[Started]:
        now_s = snapshot.now_s
        here = {gang.gang_id: gang for gang in snapshot.gangs}
        for gang_id in [gang_id for gang_id in self._gangs if gang_id not in here]:
            bundles, submit_s = self._gangs.pop(gang_id)
            yield Started(bundles, submit_s, now_s)
        for gang_id, gang in here.items():
            parts = [whole_gpus(bundle) for bundle in gang.bundles for _ in range(bundle.count)]
            bundles = tuple(sorted(filter(None, parts), reverse=True))
            if bundles and gang_id not in self._gangs:
                self._gangs[gang_id] = (bundles, now_s - (gang.waiting_s or 0.0))


def whole_gpus(demand: Demand) -> int:
    """Return the GPUs that one request takes; a share counts as a whole one."""
    return math.ceil(demand.shape.get("GPU", 0.0) - 1e-6)

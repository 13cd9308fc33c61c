"""How many spot machines each zone took back of late."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.control.observe import Change
from hybrid.core.errors import Scope
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Instance, InstanceState, Market
from hybrid.core.rate import Rate
from hybrid.core.scopes import scope_key

_HALF_LIFE_S = 86_400.0
_LEAST = 0.01  # what counts so little says nothing
_ENDS = (Fact.DRAIN_STARTED, Fact.MISSING, Fact.GONE)


class Takebacks:
    """Counts by zone; half as much after a day."""

    def __init__(self) -> None:
        self._by_zone: dict[str, Rate] = {}

    def remember(self, instance: Instance) -> None:
        """Count an instance of the ledger that was taken back, the oldest first."""
        reason = instance.drain_reason
        if reason is not None and reason.code == "interrupted":
            self._count(instance, instance.ended_at_s or instance.state_at_s)

    def learn(self, change: Change) -> None:
        """Count a running machine that its cloud takes back, or that is gone of a sudden."""
        if change.before.state is InstanceState.RUNNING and change.fact in _ENDS:
            self._count(change.after, change.after.state_at_s)

    def by_zone(self, now_s: float) -> Mapping[str, float]:
        """Return the counts by zone, see `hybrid.core.scopes.scope_key`."""
        counts = {zone: rate.total(now_s) for zone, rate in sorted(self._by_zone.items())}
        return {zone: round(count, 4) for zone, count in counts.items() if count >= _LEAST}

    def _count(self, instance: Instance, at_s: float) -> None:
        # A machine on demand is taken back by nobody: it failed.
        if instance.offer.market is Market.SPOT:
            zone = scope_key(instance.offer, Scope.ZONE)
            self._by_zone.setdefault(zone, Rate(_HALF_LIFE_S)).add(at_s, 1.0)

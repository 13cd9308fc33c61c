"""How long offers take from launch to node, learned from those that joined."""

from __future__ import annotations

from hybrid.core.models import Instance

_REMEMBERED = 50


class Boots:
    """The last boots of each offer."""

    def __init__(self) -> None:
        self._by_offer: dict[str, list[float]] = {}

    def learn(self, instance: Instance) -> None:
        """Remember an instance's boot, if it has joined."""
        if instance.joined_at_s is not None:
            boots = self._by_offer.setdefault(instance.offer.offer_id, [])
            boots.append(max(0.0, instance.joined_at_s - instance.created_at_s))
            del boots[:-_REMEMBERED]

    def p95_s(self) -> dict[str, float]:
        """Return the 95th percentile of launch to node by offer, seconds."""
        return {
            offer_id: sorted(boots)[min(len(boots) - 1, int(0.95 * len(boots)))]
            for offer_id, boots in self._by_offer.items()
        }

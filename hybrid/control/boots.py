"""How long offers take from launch to node, learned from those that joined."""

from __future__ import annotations

from hybrid.core.models import Instance

_REMEMBERED = 50
# So many say something about the slowest of twenty; fewer only raise what was expected before.
_ENOUGH = 20


class Boots:
    """The last boots of each offer."""

    def __init__(self) -> None:
        self._by_offer: dict[str, list[float]] = {}
        self._expected_s: dict[str, float] = {}

    def learn(self, instance: Instance) -> None:
        """Remember an instance's boot, if it has joined."""
        if instance.joined_at_s is not None:
            offer = instance.offer
            boots = self._by_offer.setdefault(offer.offer_id, [])
            boots.append(max(0.0, instance.joined_at_s - instance.created_at_s))
            del boots[:-_REMEMBERED]
            self._expected_s[offer.offer_id] = offer.boot_s

    def p95_s(self) -> dict[str, float]:
        """Return the 95th percentile of launch to node by offer, seconds.

        Until an offer has booted often enough it is at least what was expected of it: work that
        is rented for at its last moment must not be late because the first boot was quick.
        """
        learned = {}
        for offer_id, boots in self._by_offer.items():
            p95_s = sorted(boots)[min(len(boots) - 1, int(0.95 * len(boots)))]
            is_enough = len(boots) >= _ENOUGH
            learned[offer_id] = p95_s if is_enough else max(p95_s, self._expected_s[offer_id])
        return learned

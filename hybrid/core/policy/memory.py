"""What failed before, and how far it reaches: which offers rest, and which may be probed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hybrid.core.models import Instance, Offer, OfferFailure
from hybrid.core.scopes import scope_keys


@dataclass(frozen=True)
class Memory:
    """Failures as they bear on the offers of one plan.

    Attributes:
        by_offer: The failure that reaches an offer and lasts longest; offers without one are
            not in it.
        probed: Keys of failures that an instance which is still coming tries already.
    """

    by_offer: dict[str, OfferFailure]
    probed: frozenset[str]

    @classmethod
    def of(
        cls,
        offers: Sequence[Offer],
        failures: Collection[OfferFailure],
        coming: Collection[Instance],
    ) -> Memory:
        """Return what bears on `offers`.

        Args:
            offers: What could be rented.
            failures: All that is remembered.
            coming: Instances that were asked for and are not nodes yet.
        """
        by_key = {failure.key: failure for failure in failures}
        by_offer: dict[str, OfferFailure] = {}
        for offer in offers if by_key else ():
            reaching = [by_key[key] for key in scope_keys(offer) if key in by_key]
            if reaching:
                by_offer[offer.offer_id] = max(reaching, key=lambda f: (f.until_s, f.key))
        probed = {key for instance in coming for key in scope_keys(instance.offer)}
        return cls(by_offer, frozenset(probed & by_key.keys()))

    def key_of(self, offer_id: str) -> str:
        """Return the key of the failure that reaches an offer, or `""`."""
        failure = self.by_offer.get(offer_id)
        return failure.key if failure is not None else ""

"""A ledger that was lost: rows are made anew for machines that carry our tags.

The cluster's id outlives the ledger in the state folder, and each machine's tags say which of our
ids it has and which offer it was rented as. Without this, working machines would be nobody's, and
be ended as orphans. What cannot be told, such as the reason, is not made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.launching import Launcher
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Caps, CloudInstance, CloudState, Offer, Reason
from hybrid.core.tags import offer_mark

_REASON = Reason(
    code="adopted", message="it was found in the cloud with our tags when the ledger was new"
)


@dataclass
class Adopter:
    """Adopts what each cloud lists, once, after a start with an empty ledger.

    Attributes:
        pending: Providers whose machines were not looked at yet. Until then none of theirs is
            an orphan.
    """

    book: Book
    clouds: Clouds
    launcher: Launcher
    pending: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Find out whether the ledger is new; call once, before the first tick."""
        if not self.book.ledger.instances(limit=1):
            self.pending = {provider.name for provider in self.clouds.providers}

    def step(self) -> None:
        """Adopt from clouds that were listed, and whose offers are known, for the first time."""
        unread = {source.name for source in self.clouds.unread()}
        for name in sorted(self.pending):
            if not self.clouds.is_listed(name) or f"provider:{name}" in unread:
                continue
            offers = {offer_mark(o.offer_id): o for o in self.clouds.offers() if o.provider == name}
            for cloud in self.clouds.listed[name]:
                if cloud.state is not CloudState.GONE and not self.book.get(cloud.instance_id):
                    self._adopt(cloud, offers.get(cloud.offer_mark))
            self.pending.discard(name)

    def _adopt(self, cloud: CloudInstance, offer: Offer | None) -> None:
        if offer is None:
            return  # rented as something that is not offered any more: an orphan
        now_s = self.launcher.clock.now_s()
        intent = self.launcher.intent(cloud.instance_id, offer, _REASON, now_s=now_s)
        intent = intent.model_copy(
            update={"created_at_s": cloud.launched_at_s, "lease_until_s": cloud.expires_at_s}
        )
        # It is paid for already, so no cap keeps it out; it counts against them from now on.
        self.book.add(intent, caps=Caps(), exit_s=0.0)
        self.book.apply(
            intent, Fact.LAUNCH_ACCEPTED, problem=_REASON.message, provider_id=cloud.provider_id
        )

"""Machines that carry our tags and are in no row that lives: found, watched, ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.params import ControlParams
from hybrid.control.retries import Retries
from hybrid.core.errors import NotFoundError, ProviderError
from hybrid.core.models import CloudInstance, CloudState
from hybrid.core.ports import Clock
from hybrid.core.views import GcItem


@dataclass
class Orphans:
    """Judges what the clouds list, and ends what is nobody's.

    Attributes:
        exempt: Providers of which nothing is judged yet.
    """

    book: Book
    clouds: Clouds
    clock: Clock
    params: ControlParams
    exempt: set[str] = field(default_factory=set)
    _since_s: dict[str, float] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _told: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the record of what was asked when."""
        self._retries = Retries(self.clock, base_s=max(0.2, self.params.retry_s))

    def find(self) -> list[GcItem]:
        """Return machines that carry our tags and have no live row, with a verdict each.

        The clouds were listed before the book was read, and rows are written before create
        calls, so a machine without a row was not ours when it was listed.
        """
        items = [
            self._judge(name, cloud)
            for name, listed in sorted(self.clouds.listed.items())
            if name not in self.exempt
            for cloud in listed
            if cloud.state is not CloudState.GONE and not self._is_ours(cloud)
        ]
        self._forget_all_but({_key(item) for item in items})
        return items

    def _forget_all_but(self, keys: set[str]) -> None:
        """Forget what is no longer listed. What was not listed for want of an answer is kept."""
        unread = {p.name for p in self.clouds.providers} - self.clouds.listed.keys()
        known = {*self._since_s, *self._asked, *self._told}
        kept = keys | {key for key in known if key.partition("/")[0] in unread}
        self._since_s = {k: v for k, v in self._since_s.items() if k in kept}
        self._told = {k: v for k, v in self._told.items() if k in kept}
        self._asked &= kept
        self._retries.keep_only(kept)

    def end(self, items: list[GcItem]) -> list[GcItem]:
        """Terminate the orphans among `items`; return them as they are now."""
        return [self._end(item) if item.verdict == "orphan" else item for item in items]

    def _is_ours(self, cloud: CloudInstance) -> bool:
        row = self.book.get(cloud.instance_id)
        return row is not None and row.provider_id in ("", cloud.provider_id)

    def _judge(self, name: str, cloud: CloudInstance) -> GcItem:
        now_s = self.clock.monotonic_s()
        watched_s = now_s - self._since_s.setdefault(f"{name}/{cloud.provider_id}", now_s)
        age_s = max(0.0, self.clock.now_s() - cloud.launched_at_s)
        return GcItem(
            provider=name,
            provider_id=cloud.provider_id,
            instance_id=cloud.instance_id,
            age_s=age_s,
            verdict="young" if self._is_young(cloud, age_s, watched_s) else "orphan",
        )

    def _is_young(self, cloud: CloudInstance, age_s: float, watched_s: float) -> bool:
        """Return whether a machine's row may still be on its way.

        Both clocks count: the cloud's launch time may be wrong, and our watch may be fresh.
        """
        grace_s = self.params.orphan_grace_s
        is_fresh = watched_s < min(grace_s, 2 * self.params.tick_s)
        if self.book.get(cloud.instance_id) is None and (
            self.book.ledger.instance(cloud.instance_id) is not None
        ):
            # We know its end for certain, so there is nothing to wait for.
            return is_fresh
        return watched_s < grace_s and (age_s < grace_s or is_fresh)

    def _end(self, item: GcItem) -> GcItem:
        key = _key(item)
        if not self._retries.is_due(key):
            return item.model_copy(update={"is_terminated": key in self._asked})
        self._retries.tried(key)
        provider = self.clouds.by_name[item.provider]
        self.book.ledger.check_epoch()
        if self.book.ledger.mode().is_dry_run:
            return item
        try:
            provider.terminate([item.provider_id])
        except NotFoundError:
            return item
        except ProviderError as error:
            if self._told.get(key) != str(error):
                # Tried for ever, and told once: events are never deleted.
                self._told[key] = str(error)
                self.book.record("orphan_not_ended", item.provider_id, str(error))
            return item
        if key not in self._asked:
            self._asked.add(key)
            self.book.record(
                "orphan_ended",
                item.provider_id,
                f"it carried our tags, had no live row and was {item.age_s:.0f} s old",
                provider=item.provider,
                instance_id=item.instance_id,
            )
        return item.model_copy(update={"is_terminated": True})


def _key(item: GcItem) -> str:
    return f"{item.provider}/{item.provider_id}"

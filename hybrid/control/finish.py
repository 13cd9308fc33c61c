"""Ending what must end, and keeping alive what must live: drains, terminations, leases, orphans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.control.act import Actor
from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.params import ControlParams
from hybrid.core.backoff import backoff_s
from hybrid.core.classify import Patience, is_absence_believable
from hybrid.core.errors import NotFoundError, ProviderError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import CloudInstance, CloudState, Instance, InstanceState, Node
from hybrid.core.models import NodeStatus as Status
from hybrid.core.ports import Clock
from hybrid.core.views import GcItem

_S = InstanceState
_LEASED = (_S.BOOTING, _S.RUNNING, _S.DRAINING)


@dataclass
class Finisher:
    """Drives drains and terminations to their end, renews leases, ends orphans."""

    book: Book
    clouds: Clouds
    actor: Actor
    clock: Clock
    params: ControlParams
    _retry_at_s: dict[str, float] = field(default_factory=dict)
    _tries: dict[str, int] = field(default_factory=dict)
    _orphan_since_s: dict[str, float] = field(default_factory=dict)

    def drive_drains(self, nodes: Mapping[str, Node], *, is_ray_up: bool) -> None:
        """Repeat drain requests that Ray has not taken, after a crash for instance."""
        if not is_ray_up:
            return
        for instance in self.book.live(_S.DRAINING):
            node = nodes.get(instance.instance_id)
            if node is not None and node.status in (Status.RUNNING, Status.IDLE):
                self.actor.ask_ray(instance)

    def drive_terminations(self) -> None:
        """Ask each cloud to end what is TERMINATING, again and again until it says gone."""
        for instance in self.book.live(_S.TERMINATING, _S.LOST):
            if instance.state is _S.LOST and not instance.provider_id:
                continue
            if self.clock.monotonic_s() >= self._retry_at_s.get(instance.instance_id, 0.0):
                self._terminate(instance)

    def renew_leases(self) -> None:
        """Extend the lives of what is wanted; what is not renewed ends itself."""
        now_s = self.clock.now_s()
        due: dict[str, list[Instance]] = {}
        for instance in self.book.live(*_LEASED):
            until_s = instance.lease_until_s or 0.0
            if instance.provider_id and until_s - now_s < self.params.lease_s - self.params.renew_s:
                due.setdefault(instance.offer.provider, []).append(instance)
        for name, instances in due.items():
            self._extend(name, instances, until_s=now_s + self.params.lease_s)

    def orphans(self) -> list[GcItem]:
        """Return machines that carry our tags and have no live row, with a verdict each.

        The clouds were listed before the book was read, and rows are written before create
        calls, so a machine without a row was not ours when it was listed.
        """
        items = []
        for name, listed in sorted(self.clouds.listed.items()):
            for cloud in listed:
                if cloud.state is not CloudState.GONE:
                    items += self._judge(name, cloud)
        seen = {f"{item.provider}/{item.provider_id}" for item in items}
        self._orphan_since_s = {k: v for k, v in self._orphan_since_s.items() if k in seen}
        return items

    def end_orphans(self, items: list[GcItem]) -> list[GcItem]:
        """Terminate the orphans among `items`; return them as they are now."""
        return [self._end(item) if item.verdict == "orphan" else item for item in items]

    def _terminate(self, instance: Instance) -> None:
        provider = self.clouds.by_name.get(instance.offer.provider)
        if provider is None:
            # Its block left the configuration: only its lease can end it, and we cannot see it.
            self.book.note(instance, problem="its provider is no longer configured")
            return
        key = instance.instance_id
        self._tries[key] = self._tries.get(key, 0) + 1
        delay_s = backoff_s(self._tries[key], base_s=max(0.2, self.params.retry_s), cap_s=60.0)
        self._retry_at_s[key] = self.clock.monotonic_s() + delay_s
        self.book.ledger.check_epoch()
        try:
            provider.terminate([instance.provider_id])
        except NotFoundError as error:
            lag_s = provider.list_lag_s
            patience = Patience(list_lag_s=lag_s)
            now_s = self.clock.now_s()
            if is_absence_believable(instance, now_s=now_s, patience=patience):
                self.book.apply(instance, Fact.GONE, problem=f"the cloud: {error}")
        except ProviderError as error:
            self.book.note(instance, problem=f"terminate failed: {error}")

    def _extend(self, name: str, instances: list[Instance], *, until_s: float) -> None:
        provider = self.clouds.by_name.get(name)
        if provider is None:
            return
        self.book.ledger.check_epoch()
        try:
            provider.extend([i.provider_id for i in instances], until_s=until_s)
        except NotFoundError:
            return  # the list will say the same, with patience
        except ProviderError as error:
            for instance in instances:
                self.book.note(instance, problem=f"lease not renewed: {error}")
            return
        for instance in instances:
            self.book.note(instance, lease_until_s=until_s)

    def _judge(self, name: str, cloud: CloudInstance) -> list[GcItem]:
        row = self.book.get(cloud.instance_id)
        if row is not None and (not row.provider_id or row.provider_id == cloud.provider_id):
            return []
        now_s = self.clock.now_s()
        key = f"{name}/{cloud.provider_id}"
        since_s = self._orphan_since_s.setdefault(key, self.clock.monotonic_s())
        watched_s = self.clock.monotonic_s() - since_s
        age_s = max(0.0, now_s - cloud.launched_at_s)
        grace_s = self.params.orphan_grace_s
        # Both clocks: the cloud's launch time may be wrong, and our watch may be fresh.
        is_young = age_s < grace_s or watched_s < min(grace_s, 2 * self.params.tick_s)
        if self.book.ledger.instance(cloud.instance_id) is not None and row is None:
            # We know its end for certain, so there is nothing to wait for.
            is_young = watched_s < min(grace_s, 2 * self.params.tick_s)
        return [
            GcItem(
                provider=name,
                provider_id=cloud.provider_id,
                instance_id=cloud.instance_id,
                age_s=age_s,
                verdict="young" if is_young else "orphan",
            )
        ]

    def _end(self, item: GcItem) -> GcItem:
        provider = self.clouds.by_name[item.provider]
        self.book.ledger.check_epoch()
        try:
            provider.terminate([item.provider_id])
        except NotFoundError:
            return item
        except ProviderError as error:
            self.book.record("orphan_not_ended", item.provider_id, str(error))
            return item
        self.book.record(
            "orphan_ended",
            item.provider_id,
            f"it carried our tags, had no live row and was {item.age_s:.0f} s old",
            provider=item.provider,
            instance_id=item.instance_id,
        )
        return item.model_copy(update={"is_terminated": True})

"""Ending what must end, and keeping alive what must live: drains, terminations, leases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hybrid.control.act import Actor, may_drain
from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.orphans import Orphans
from hybrid.control.params import ControlParams
from hybrid.control.retries import Retries
from hybrid.control.steady import JUMP_S
from hybrid.core.classify import Patience, has_reason, is_absence_believable
from hybrid.core.errors import NotFoundError, ProviderError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Instance, InstanceState, Node
from hybrid.core.models import NodeStatus as Status
from hybrid.core.ports import Clock, Provider

_S = InstanceState
_LEASED = (_S.BOOTING, _S.RUNNING, _S.DRAINING)
# Leases that one tick renews in each cloud, or as many as it takes to get around within the time
# in which each is to be renewed; more only where less than this part of one is left.
ROUTINE_COUNT = 12
_SHORT_RATIO = 0.5
_RELEASED = "it was quarantined, and its lease is over"


@dataclass
class Finisher:
    """Drives drains and terminations to their end, and renews leases."""

    book: Book
    clouds: Clouds
    actor: Actor
    clock: Clock
    params: ControlParams

    def __post_init__(self) -> None:
        """Make what only the finisher needs."""
        self.orphans = Orphans(self.book, self.clouds, self.clock, self.params)
        self._retries = Retries(self.clock, base_s=max(0.2, self.params.retry_s))
        self._released: set[str] = set()
        self._sent_s: dict[str, float] = {}

    def drive_drains(self, nodes: Mapping[str, Node], *, is_ray_up: bool) -> None:
        """Repeat drain requests that Ray has not taken, after a crash for instance."""
        if not is_ray_up:
            return
        for instance in self.book.live(_S.DRAINING):
            node = nodes.get(instance.instance_id)
            if node is None or node.status not in (Status.RUNNING, Status.IDLE):
                continue
            mode = self.book.ledger.mode()
            if may_drain(mode, instance.drain_reason):
                self.actor.ask_ray(instance)
            elif not mode.is_dry_run:
                # Ray was not asked, or did not hear it: the node is as good as before.
                problem = f"scale-in was paused by {mode.owner or 'an operator'}"
                self.book.apply(instance, Fact.DRAIN_REFUSED, problem=problem)

    def drive_terminations(self) -> None:
        """Ask each cloud to end what must end, again and again until it says gone."""
        names = {i.instance_id for i in self.book.all()}
        self._retries.keep_only(names | {_expiry_key(name) for name in names})
        self._released &= names
        due = []
        for instance in self.book.live(_S.TERMINATING, _S.LOST):
            # Without the cloud's id there is nothing to ask for until its list shows one.
            if not instance.provider_id or not self._retries.is_due(instance.instance_id):
                continue
            provider = self.clouds.by_name.get(instance.offer.provider)
            if provider is None:
                # Its block left the configuration: only its lease can end it, unseen by us.
                self.book.note(instance, problem="its provider is no longer configured")
                continue
            self._retries.tried(instance.instance_id)
            due.append((instance, partial(_end, provider, instance.provider_id)))
        if not due:
            return
        self.book.ledger.check_epoch()
        if self.book.ledger.mode().is_dry_run:
            return
        for number, error in self.clouds.together([call for _, call in due]):
            if error is not None:
                self._not_ended(due[number][0], error)

    def renew_leases(self) -> None:
        """Extend the lives of what is wanted; what is not renewed ends itself."""
        now_s = self.clock.now_s()
        due: dict[tuple[str, float], list[Instance]] = {}
        alive = {i.instance_id for i in self.book.all()}
        self._sent_s = {k: v for k, v in self._sent_s.items() if k in alive}
        for instance in self._leases_due(now_s):
            key = instance.offer.provider, self._until_s(instance, now_s)
            due.setdefault(key, []).append(instance)
        if not due:
            return
        self.book.ledger.check_epoch()
        calls = [
            partial(self._extend, name, instances, until_s=until_s)
            for (name, until_s), instances in due.items()
        ]
        # All clouds first, then the notes: a ledger that cannot be written costs no lives.
        answers = dict(self.clouds.together(calls))
        extended = [(rows, answers[number]) for number, rows in enumerate(due.values())]
        for instances, changes in extended:
            if until_s := changes.get("lease_until_s"):
                self._sent_s |= dict.fromkeys((i.instance_id for i in instances), until_s)
        for instances, changes in extended:
            for instance in instances:
                self.book.note(instance, **changes)

    def release_expired(self) -> None:
        """End quarantines whose lease is over: what is left of the machine has to go.

        Nothing touches a quarantined instance while it lives. Its lease ended it; this makes
        sure, and gives its row a way out also when the cloud forgot it meanwhile.
        """
        for instance in self.book.all():
            is_over = (instance.lease_until_s or 0.0) + self.params.renew_s < self.clock.now_s()
            if not instance.quarantine or not is_over or instance.instance_id in self._released:
                continue
            self._released.add(instance.instance_id)
            freed = self.book.note(instance, quarantine="")
            if freed.state is _S.REQUESTED:
                self.book.apply(freed, Fact.LAUNCH_OVERDUE, problem=_RELEASED)
            elif freed.state is not _S.TERMINATING:
                self.book.apply(freed, Fact.TERMINATE_ASKED, problem=_RELEASED)

    def _leases_due(self, now_s: float) -> list[Instance]:
        """Return whose leases to renew in this tick.

        Some clouds need calls for each, and hundreds at once would hold up everything else. So of
        each cloud a few are renewed in a tick, the shortest first, and those that cannot wait.
        """
        found: list[Instance] = []
        taken: Counter[str] = Counter()
        rented = [i for i in self.book.live(*_LEASED) if i.provider_id]
        counts = Counter(i.offer.provider for i in rented)
        most = {name: self._routine_count(count) for name, count in counts.items()}
        for instance in sorted(rented, key=lambda i: i.lease_until_s or 0.0):
            name = instance.offer.provider
            if self._is_lease_due(instance, now_s, is_full=taken[name] >= most[name]):
                found.append(instance)
                taken[name] += 1
        return found

    def _routine_count(self, leased_count: int) -> int:
        """Return how many of a cloud's leases one tick renews, when none of them is short."""
        ticks = self.params.renew_s / self.params.tick_s
        return max(ROUTINE_COUNT, math.ceil(leased_count / ticks))

    def _is_lease_due(self, instance: Instance, now_s: float, *, is_full: bool) -> bool:
        left_s = (instance.lease_until_s or 0.0) - now_s
        if left_s < self.params.lease_s - self.params.renew_s:
            return not is_full or left_s < _SHORT_RATIO * self.params.lease_s
        if left_s > self.params.lease_s + JUMP_S:
            # More than was ever given: the clock was set back, and the row tells nothing.
            return True
        cloud = self.clouds.find(
            instance.offer.provider, instance.instance_id, provider_id=instance.provider_id
        )
        # Some clouds set the expiry in a call of its own, and a crash may come before that.
        # Until it is made up for, nothing but us would end the machine.
        key = _expiry_key(instance.instance_id)
        is_missing = cloud is not None and cloud.expires_at_s is None
        if not is_missing or not self._retries.is_due(key):
            return False
        self._retries.tried(key)
        return True

    def _until_s(self, instance: Instance, now_s: float) -> float:
        """Return the expiry to ask for.

        Never an earlier one than the cloud holds already. When the two are further apart than
        any lost answer explains, the clocks are: then we count in the cloud's time.
        """
        until_s = now_s + self.params.lease_s
        cloud = self.clouds.find(
            instance.offer.provider, instance.instance_id, provider_id=instance.provider_id
        )
        if cloud is None or cloud.expires_at_s is None or instance.lease_until_s is None:
            return until_s
        # What was sent last, also when the ledger could not take it down: or each failed write
        # would look like a clock that is further ahead, and the lease would run away.
        sent_s = max(instance.lease_until_s, self._sent_s.get(instance.instance_id, 0.0))
        ahead_s = cloud.expires_at_s - sent_s
        if ahead_s > self.params.lease_s:
            return until_s + ahead_s
        return max(until_s, cloud.expires_at_s)

    def _not_ended(self, instance: Instance, error: ProviderError) -> None:
        if not isinstance(error, NotFoundError):
            self.book.note(instance, problem=f"terminate failed: {error}")
            return
        provider = self.clouds.by_name[instance.offer.provider]
        patience = Patience(list_lag_s=provider.list_lag_s)
        if is_absence_believable(instance, now_s=self.clock.now_s(), patience=patience):
            problem = "" if has_reason(instance) else f"the cloud: {error}"
            self.book.apply(instance, Fact.GONE, problem=problem)

    def _extend(self, name: str, instances: list[Instance], *, until_s: float) -> dict[str, Any]:
        """Ask a cloud for longer lives; return what to note about each instance."""
        provider = self.clouds.by_name.get(name)
        if provider is None:
            return {}
        now_s = self.clock.now_s()
        try:
            provider.extend([i.provider_id for i in instances], until_s=until_s)
        except NotFoundError:
            return {}  # the list will say the same, with patience
        except ProviderError as error:
            return {"problem": f"lease not renewed: {error}"}
        return {"lease_until_s": now_s + self.params.lease_s}


def _end(provider: Provider, provider_id: str) -> ProviderError | None:
    """Ask a cloud to end one instance; return what it said against it."""
    try:
        provider.terminate([provider_id])
    except ProviderError as error:
        return error
    return None


def _expiry_key(instance_id: str) -> str:
    return f"expiry of {instance_id}"

"""Renting what a plan asks for: intents first, then the calls, many at once.

One failure teaches all: an offer is asked for one instance first, then for two, four, and so on,
so that a cloud that is sold out is not asked for a hundred. Whatever a call may have rented has
its row from before the call to the cloud's own word that it is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.params import ClusterFacts, ControlParams
from hybrid.control.renting import Request, join_token, launch_token
from hybrid.control.resting import Resting
from hybrid.core.errors import (
    AuthError,
    CapacityError,
    CapExceededError,
    InvalidRequestError,
    ProviderError,
    QuotaError,
    ThrottledError,
)
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Instance, InstanceState, LaunchSpec, Offer, Reason
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.plan import Launch
from hybrid.core.ports import Clock
from hybrid.core.tags import owner_tags

_S = InstanceState
_REFUSALS = (CapacityError, QuotaError, InvalidRequestError, AuthError)


@dataclass
class Launcher:
    """Rents instances, and repeats create calls whose outcome is unknown.

    Attributes:
        new_id: Makes an instance id never used before.
        secret: Key of the join tokens.
        seen_at_s: When the tick began to look at the world, by the monotonic clock.
        refused_count: Calls that were refused so far; when it grows, a plan came to less
            than it meant to.
        _capped: Offers and caps of which the ledger's word was written down.
        _untouched: Intents of this process of which no call can have rented anything.
    """

    book: Book
    clouds: Clouds
    clock: Clock
    params: ControlParams
    facts: ClusterFacts
    new_id: Callable[[], str]
    secret: bytes
    resting: Resting
    seen_at_s: float | None = None
    refused_count: int = 0
    _capped: set[tuple[str, str]] = field(default_factory=set)
    _retry_at_s: dict[str, float] = field(default_factory=dict)
    _untouched: set[str] = field(default_factory=set)

    def launch(self, launches: Sequence[Launch]) -> None:
        """Rent what a plan asks for, in waves that double for each offer."""
        orders = _orders(launches)
        most = 1
        while orders:
            asked: Counter[str] = Counter()
            wave: list[tuple[Launch, ...]] = []
            later: list[tuple[Launch, ...]] = []
            for order in orders:
                offer_id = order[0].offer.offer_id
                is_first = asked[offer_id] == 0
                (wave if is_first or asked[offer_id] + len(order) <= most else later).append(order)
                asked[offer_id] += len(order)
            self._call(list(filter(None, map(self._intents, wave))))
            orders, most = later, 2 * most

    def retry(self) -> None:
        """Repeat create calls whose outcome is unknown, with the same token and parameters."""
        now_s = self.clock.monotonic_s()
        asked = {i.instance_id: i for i in self.book.live(_S.REQUESTED)}
        self._retry_at_s = {k: v for k, v in self._retry_at_s.items() if k in asked}
        self._untouched &= asked.keys()
        due = [i for i in asked.values() if now_s >= self._retry_at_s.get(i.instance_id, 0.0)]
        whole = {i.spec.gang or (i.instance_id,): None for i in due}
        self._call(list(filter(None, map(self._again, whole))))

    def _again(self, names: Sequence[str]) -> list[Instance]:
        """Return the rows of one call, or none when it cannot be repeated as it was."""
        rows = [self.book.get(name) for name in names]
        known = [row for row in rows if row is not None and not row.quarantine]
        # Without a row there is no way to make the same call. The cloud's list will tell.
        return known if len(known) == len(names) else []

    # --- intents --------------------------------------------------------------------------

    def _may_launch(self, provider: str) -> bool:
        """Return whether launches are allowed at this very moment."""
        # What we cannot list we could not reap either, and an old picture is no picture.
        if not self.clouds.is_listed(provider) or self._is_stalled():
            return False
        mode = self.book.ledger.mode()
        return not (mode.is_out_paused or mode.is_dry_run or mode.is_closing)

    def _is_stalled(self) -> bool:
        age_s = 0.0 if self.seen_at_s is None else self.clock.monotonic_s() - self.seen_at_s
        return age_s > self.params.stall_s

    def _intents(self, order: Sequence[Launch]) -> list[Instance]:
        """Write the intents of one call; return them, or nothing when it must not be made."""
        offer = order[0].offer
        # An offer that failed a moment ago, in this very plan, is not asked ten times more.
        if self.book.is_resting(offer) or not self._may_launch(offer.provider):
            return []
        names = [self.new_id() for _ in order]
        gang = tuple(names) if len(names) > 1 else ()
        # One moment for all: the machines of a gang differ in nothing but their ids.
        now_s = self.clock.now_s()
        written: list[Instance] = []
        for name, launch in zip(names, order, strict=True):
            instance = self.intent(name, offer, launch.reason, now_s=now_s, gang=gang)
            try:
                # Before the call: a crash here leaves a trace, not a leak.
                self.book.add(instance, caps=self.params.caps, exit_s=self.params.policy.exit_s)
            except CapExceededError as error:
                self._note_cap(offer, error, launch.reason)
                for one in written:
                    self.book.apply(one, Fact.LAUNCH_REFUSED, problem=f"not whole: {error}")
                return []
            written.append(instance)
        self._capped = {key for key in self._capped if key[0] != offer.offer_id}
        self._untouched.update(names)
        return written

    def _note_cap(self, offer: Offer, error: CapExceededError, reason: Reason) -> None:
        """Write down that the ledger sees less room than the policy; once, not in each tick."""
        key = offer.offer_id, error.cap
        if key not in self._capped:
            self._capped.add(key)
            facts = {"cap": error.cap, "reason_code": reason.code}
            self.book.record("launch_capped", offer.offer_id, str(error), **facts)

    def intent(
        self,
        instance_id: str,
        offer: Offer,
        reason: Reason,
        *,
        now_s: float,
        gang: tuple[str, ...] = (),
    ) -> Instance:
        """Return the row of a launch before it is written."""
        spec = LaunchSpec(
            cluster_id=self.facts.cluster_id,
            instance_id=instance_id,
            gang=gang,
            epoch=self.book.ledger.epoch,
            head_address=self.facts.head_address,
            controller_url=self.facts.controller_url,
            labels=rented_labels(offer),
            expires_at_s=now_s + self.params.lease_s,
            ray_version=self.facts.ray_version,
            python_version=self.facts.python_version,
            ray=self.facts.ray,
            tags=owner_tags(
                cluster_id=self.facts.cluster_id,
                cluster_name=self.facts.name,
                instance_id=instance_id,
                epoch=self.book.ledger.epoch,
                offer_id=offer.offer_id,
            ),
        )
        return Instance(
            instance_id=instance_id,
            offer=offer,
            spec=spec,
            token=launch_token(self.facts.cluster_id, instance_id, spec.attempt),
            state=_S.REQUESTED,
            state_at_s=now_s,
            created_at_s=now_s,
            deadline_at_s=now_s + self.params.deadlines.launch_s,
            lease_until_s=spec.expires_at_s,
            reason=reason,
        )

    # --- calls ----------------------------------------------------------------------------

    def _call(self, orders: Sequence[Sequence[Instance]]) -> None:
        """Make all calls at once, and write down what comes of each."""
        requests = []
        for instances in orders:
            name = instances[0].offer.provider
            retry_at_s = self.clock.monotonic_s() + self.params.retry_s
            self._retry_at_s.update({i.instance_id: retry_at_s for i in instances})
            provider = self.clouds.by_name.get(name)
            if provider is not None and self._may_launch(name):
                tokens = self._join_tokens(instances)
                requests.append(Request(tuple(instances), provider, tokens, self._may_launch))
        if not requests:
            return
        self.book.ledger.check_epoch()
        called = {i.instance_id for request in requests for i in request.instances}
        # Whatever happens to us before an answer is written down: they may exist.
        untouched, self._untouched = self._untouched & called, self._untouched - called
        for number, answer in self.clouds.together([request.ask for request in requests]):
            # As they come: a node may ask to join while another cloud still thinks.
            request = requests[number]
            is_untouched = all(i.instance_id in untouched for i in request.instances)
            if is_untouched and (answer is None or isinstance(answer, ThrottledError)):
                self._untouched.update(i.instance_id for i in request.instances)
            if answer is not None:
                self._settle(request.instances, answer, is_untouched=is_untouched)
                self.clouds.forget_offers(request.provider.name)

    def _join_tokens(self, instances: Iterable[Instance]) -> dict[str, str]:
        return {
            i.instance_id: join_token(self.secret, i.instance_id, i.spec.attempt) for i in instances
        }

    def _settle(
        self,
        instances: Sequence[Instance],
        answer: Mapping[str, str] | ProviderError,
        *,
        is_untouched: bool,
    ) -> None:
        waiting = [i for i in instances if i.state is _S.REQUESTED]
        if isinstance(answer, _REFUSALS):
            for instance in waiting:
                self._refused(instance, answer, is_untouched=is_untouched)
            self.refused_count += 1
            self.resting.failed(instances[0].offer, answer)
        elif isinstance(answer, ProviderError):
            # Throttled: nothing came of it, and it is asked again. Timed out or unknown: it may
            # exist. The row keeps its reservation.
            for instance in waiting:
                self.book.note(instance, problem=str(answer))
        else:
            for instance in waiting:
                provider_id = answer.get(instance.instance_id, "")
                if provider_id:
                    self.book.apply(instance, Fact.LAUNCH_ACCEPTED, provider_id=provider_id)

    def _refused(self, instance: Instance, error: ProviderError, *, is_untouched: bool) -> None:
        """Close an intent that was refused, or look for what an earlier call may have made.

        "Nothing was rented" is true of one call. When an earlier one, of this process or of
        one that crashed, got no answer, only the cloud's lists can tell.
        """
        if is_untouched:
            self.book.apply(instance, Fact.LAUNCH_REFUSED, problem=str(error))
        else:
            problem = f"refused, but an earlier call may have rented it: {error}"
            self.book.apply(instance, Fact.LAUNCH_OVERDUE, problem=problem)


def _orders(launches: Sequence[Launch]) -> list[tuple[Launch, ...]]:
    """Return what is asked for in one call each: single instances, and gangs where that is had."""
    found: dict[object, list[Launch]] = {}
    for number, launch in enumerate(launches):
        found.setdefault(launch.gang or f"single {number}", []).append(launch)
    orders: list[tuple[Launch, ...]] = []
    for group in found.values():
        if len(group) <= group[0].offer.max_gang:
            orders.append(tuple(group))
        else:
            orders += [(launch,) for launch in group]
    return orders

"""The book of live instances: every change of state goes through here, with its event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hybrid.control import log
from hybrid.core.errors import IllegalTransitionError, LedgerError
from hybrid.core.lifecycle import Deadlines, Fact, advance
from hybrid.core.models import Caps, Event, Instance, InstanceState, Offer, OfferFailure
from hybrid.core.ports import Clock, Ledger
from hybrid.core.scopes import scope_keys

_log = log.get(__name__)


@dataclass
class Book:
    """Live instances and resting offers, in step with the ledger.

    One writer, so what was read once and written through stays true. After a write that failed
    nobody knows what the ledger has, so everything is read again.

    Attributes:
        read_count: How often it was read from the ledger: what was known before may be old.
        ended_count: How many have ended since the start; it grows when spend was booked.
    """

    ledger: Ledger
    clock: Clock
    deadlines: Deadlines
    read_count: int = 0
    ended_count: int = 0
    _by_id: dict[str, Instance] = field(default_factory=dict)
    _failures: dict[str, OfferFailure] = field(default_factory=dict)
    _is_fresh: bool = False

    def read(self) -> None:
        """Make sure that the book says what the ledger says."""
        if self._is_fresh:
            return
        self._by_id = {i.instance_id: i for i in self.ledger.live_instances()}
        self._failures = {f.key: f for f in self.ledger.failures()}
        self._is_fresh = True
        self.read_count += 1

    def live(self, *states: InstanceState) -> Iterator[Instance]:
        """Yield live instances, of the given states if any, oldest first.

        Quarantined ones are left out: nothing may touch them.
        """
        for instance in list(self._by_id.values()):
            current = self._by_id.get(instance.instance_id)
            if current is None or current.quarantine:
                continue
            if not states or current.state in states:
                yield current

    def all(self) -> tuple[Instance, ...]:
        """Return all live instances, quarantined ones too."""
        return tuple(self._by_id.values())

    def get(self, instance_id: str) -> Instance | None:
        """Return a live instance."""
        return self._by_id.get(instance_id)

    def add(self, instance: Instance, *, caps: Caps, exit_s: float) -> None:
        """Write an intent; see `Ledger.request`."""
        with self._writing():
            self.ledger.request(instance, caps=caps, exit_s=exit_s, now_s=self.clock.now_s())
        self._by_id[instance.instance_id] = instance
        _log.info(
            "instance_requested",
            instance_id=instance.instance_id,
            provider=instance.offer.provider,
            instance_type=instance.offer.instance_type,
            price_usd_per_hour=instance.offer.usd_per_hour,
            reason=instance.reason.message,
        )

    def note(self, instance: Instance, **changes: object) -> Instance:
        """Store facts that change no state."""
        if not changes:
            return instance
        changed = instance.model_copy(update=changes)
        if changed != instance:
            self._save(changed)
        return changed

    def apply(
        self, instance: Instance, fact: Fact, *, problem: str = "", **changes: object
    ) -> Instance:
        """Store what `fact` makes of an instance; an impossible fact quarantines it."""
        now_s = self.clock.now_s()
        try:
            changed = advance(
                instance, fact, now_s=now_s, deadlines=self.deadlines, problem=problem
            )
        except IllegalTransitionError as error:
            return self._quarantine(instance, str(error))
        changed = changed.model_copy(update=changes) if changes else changed
        facts: dict[str, object] = {
            "from": instance.state.value,
            "to": changed.state.value,
            "because": fact.value,
            "provider": instance.offer.provider,
            "offer_id": instance.offer.offer_id,
        }
        event = Event(
            at_s=now_s,
            epoch=0,
            kind=f"instance_{changed.state.value}",
            subject=instance.instance_id,
            message=problem or fact.value.replace("_", " "),
            facts=facts,
        )
        self._save(changed, event)
        _log.info(event.kind, instance_id=instance.instance_id, reason=event.message, **facts)
        return changed

    def record(self, kind: str, subject: str = "", message: str = "", **facts: object) -> None:
        """Append an event that is about no change of state."""
        self.record_all([self.event(kind, subject, message, **facts)])

    def event(self, kind: str, subject: str = "", message: str = "", **facts: object) -> Event:
        """Return an event of now, to be recorded with others."""
        now_s = self.clock.now_s()
        return Event(at_s=now_s, epoch=0, kind=kind, subject=subject, message=message, facts=facts)

    def record_all(self, events: Sequence[Event]) -> None:
        """Append events in one transaction: a thousand nodes that join cost one commit."""
        if not events:
            return
        self.ledger.append(*events)
        for event in events:
            # Whatever the facts are called, they must not clash with the log's own fields.
            facts = {k: v for k, v in event.facts.items() if k != "event"}
            _log.info(event.kind, **{**facts, "subject": event.subject, "reason": event.message})

    # --- offers that rest -----------------------------------------------------------------

    def failures(self) -> tuple[OfferFailure, ...]:
        """Return offers that failed, also those whose time has passed."""
        return tuple(self._failures.values())

    def failure(self, key: str) -> OfferFailure | None:
        """Return the newest failure of an offer or scope."""
        return self._failures.get(key)

    def is_resting(self, offer: Offer) -> bool:
        """Return whether the offer, or a scope it is in, is to be left alone now."""
        failures = (self._failures.get(key) for key in scope_keys(offer))
        now_s = self.clock.now_s()
        return any(f is not None and f.until_s > now_s for f in failures)

    def save_failure(self, failure: OfferFailure) -> None:
        """Store the newest failure of an offer or scope."""
        with self._writing():
            self.ledger.save_failure(failure)
        self._failures[failure.key] = failure

    def clear_failures(self, offer: Offer) -> None:
        """Forget the failures of an offer and of every scope it is in, after a success."""
        for key in scope_keys(offer):
            if key in self._failures:
                with self._writing():
                    self.ledger.clear_failure(key)
                del self._failures[key]

    # --- inside ---------------------------------------------------------------------------

    def _quarantine(self, instance: Instance, problem: str) -> Instance:
        changed = instance.model_copy(update={"quarantine": problem})
        event = Event(
            at_s=self.clock.now_s(),
            epoch=0,
            kind="instance_quarantined",
            subject=instance.instance_id,
            message=problem,
        )
        self._save(changed, event)
        _log.error(event.kind, instance_id=instance.instance_id, reason=problem)
        return changed

    def _save(self, instance: Instance, *events: Event) -> None:
        with self._writing():
            self.ledger.save(instance, *events)
        if instance.is_ended:
            self.ended_count += 1
            self._by_id.pop(instance.instance_id, None)
        else:
            self._by_id[instance.instance_id] = instance

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except LedgerError:
            # The commit may have happened although its answer was lost.
            self._is_fresh = False
            raise

"""A ledger in memory, for tests with thousands of histories.

A verified fake: `tests/control/test_memory_ledger.py` plays the same random histories on it and
on the real one, and finds the same rows, events and spends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.adapters.ledger.rows import requested_event
from hybrid.core.cost import (
    Payment,
    cap_breach,
    commitment,
    month_start_s,
    payment,
    spend_of,
)
from hybrid.core.errors import CapExceededError, FencedError, LedgerError
from hybrid.core.models import (
    Caps,
    Event,
    Instance,
    InstanceState,
    Job,
    JobState,
    OfferFailure,
    Spend,
)
from hybrid.core.ports import Mode


@dataclass
class MemoryStore:
    """What is on the disk: it outlives every controller.

    Attributes:
        asked: Each intent as it was written: the order of rows follows it, also when their
            instants are moved with the clock.
    """

    cluster_id: str = "c-memory"
    epoch: int = 0
    instances: dict[str, Instance] = field(default_factory=dict)
    asked: dict[str, Instance] = field(default_factory=dict)
    spends: list[Spend] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    failures: dict[str, OfferFailure] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    joins: dict[str, float] = field(default_factory=dict)
    mode: Mode = field(default_factory=Mode)


class MemoryLedger:
    """See `hybrid.core.ports.Ledger`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._epoch = 0

    @property
    def cluster_id(self) -> str:
        return self._store.cluster_id

    @property
    def epoch(self) -> int:
        return self._epoch

    def acquire(self, holder: str, *, now_s: float) -> int:
        self._store.epoch += 1
        self._epoch = self._store.epoch
        return self._epoch

    def check_epoch(self) -> None:
        if self._epoch != self._store.epoch:
            raise FencedError(f"epoch {self._store.epoch} took over from {self._epoch}")

    # --- instances ------------------------------------------------------------------------

    def request(self, instance: Instance, *, caps: Caps, exit_s: float, now_s: float) -> None:
        self.check_epoch()
        name = instance.instance_id
        if instance.state is not InstanceState.REQUESTED or name in self._store.instances:
            raise LedgerError(f"cannot request instance {name}")
        spends = [s for s in self._store.spends if s.to_s > month_start_s(now_s)]
        committed = commitment(self.live_instances(), spends, now_s=now_s, exit_s=exit_s)
        breach = cap_breach(instance.offer, caps=caps, committed=committed, exit_s=exit_s)
        if breach is not None:
            raise CapExceededError(str(breach), cap=breach.cap)
        self._store.instances[name] = self._store.asked[name] = instance
        self._add(requested_event(instance, now_s=now_s))

    def save(self, instance: Instance, *events: Event) -> None:
        self.check_epoch()
        name = instance.instance_id
        before = self._store.instances.get(name)
        if before is None or before.is_ended:
            raise LedgerError(f"cannot save instance {name}: it is unknown or has ended")
        self._store.instances[name] = instance
        spend = spend_of(instance) if instance.is_ended else None
        if spend is not None:
            self._store.spends.append(spend)
        self._add(*events)

    def live_instances(self) -> Sequence[Instance]:
        return tuple(i for i in self._oldest_first() if not i.is_ended)

    def instance(self, instance_id: str) -> Instance | None:
        return self._store.instances.get(instance_id)

    def instances(self, *, limit: int = 1000) -> Sequence[Instance]:
        return tuple(reversed(self._oldest_first()[-limit:]))

    def _oldest_first(self) -> list[Instance]:
        asked = sorted(self._store.asked.values(), key=lambda i: (i.created_at_s, i.instance_id))
        return [self._store.instances[i.instance_id] for i in asked]

    def spends(self, *, since_s: float = 0.0) -> Sequence[Spend]:
        return tuple(
            sorted((s for s in self._store.spends if s.to_s > since_s), key=lambda s: s.to_s)
        )

    def payments(self, *, now_s: float) -> Sequence[Payment]:
        return tuple(payment(s) for s in self.spends(since_s=month_start_s(now_s)))

    def mark_joined(self, instance_id: str, *, now_s: float) -> bool:
        self.check_epoch()
        if instance_id not in self._store.instances:
            raise LedgerError(f"instance {instance_id} is unknown")
        if instance_id in self._store.joins:
            return False
        self._store.joins[instance_id] = now_s
        return True

    # --- history --------------------------------------------------------------------------

    def append(self, *events: Event) -> None:
        self.check_epoch()
        self._add(*events)

    def events(
        self, *, after_seq: int = 0, limit: int = 1000, subject: str = ""
    ) -> Sequence[Event]:
        found = [e for e in self._store.events if e.seq > after_seq and subject in ("", e.subject)]
        return tuple(found[:limit] if after_seq > 0 else found[-limit:])

    def _add(self, *events: Event) -> None:
        for event in events:
            seq = len(self._store.events) + 1
            self._store.events.append(event.model_copy(update={"seq": seq, "epoch": self._epoch}))

    # --- switches, failures, jobs ---------------------------------------------------------

    def failures(self) -> Sequence[OfferFailure]:
        return tuple(f for _, f in sorted(self._store.failures.items()))

    def save_failure(self, failure: OfferFailure) -> None:
        self.check_epoch()
        self._store.failures[failure.key] = failure

    def clear_failure(self, key: str) -> None:
        self.check_epoch()
        self._store.failures.pop(key, None)

    def mode(self) -> Mode:
        return self._store.mode

    def set_mode(self, mode: Mode) -> None:
        self.check_epoch()
        self._store.mode = mode

    def job(self, job_id: str) -> Job | None:
        return self._store.jobs.get(job_id)

    def jobs(self, *, is_live_only: bool = False, limit: int | None = 1000) -> Sequence[Job]:
        ordered = sorted(self._store.jobs.values(), key=lambda j: (j.created_at_s, j.job_id))
        if is_live_only:
            return tuple(j for j in ordered if not j.state.is_ended)[:limit]
        newest = tuple(reversed(ordered))
        return newest[:limit]

    def job_counts(self) -> Mapping[JobState, int]:
        return Counter(job.state for job in self._store.jobs.values())

    def save_job(self, job: Job, *events: Event) -> None:
        self.check_epoch()
        self._store.jobs[job.job_id] = job
        self._add(*events)

    def close(self) -> None:
        """Nothing is held."""

"""Our promises, durable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hybrid.core.cost import Payment
from hybrid.core.models import Caps, Event, Instance, Job, JobState, Model, OfferFailure, Spend


class Mode(Model):
    """The operator's switches, read again at each mutation.

    Attributes:
        is_out_paused: No launches.
        is_in_paused: No drains, no scale-in. Orphans and overdue instances still end.
        is_dry_run: Decide and log, change nothing.
        is_closing: `hybrid down` was asked: no launches; everything is drained and ended.
        close_by_s: When `is_closing` stops waiting for running work.
        owner: Who set it.
    """

    is_out_paused: bool = False
    is_in_paused: bool = False
    is_dry_run: bool = False
    is_closing: bool = False
    close_by_s: float | None = None
    owner: str = ""


class Ledger(Protocol):
    """Our promises, durable. One writer, fenced by an epoch; thread-safe.

    Every write checks the epoch in its own transaction. Every method raises `LedgerError`
    when the store cannot be read or written, and writes raise `FencedError` when another
    controller took over.
    """

    @property
    def cluster_id(self) -> str:
        """Random id made with the ledger; the owner tag of everything we rent."""
        ...

    @property
    def epoch(self) -> int:
        """The epoch this writer holds; 0 before `acquire`."""
        ...

    def acquire(self, holder: str, *, now_s: float) -> int:
        """Take the writer's seat with a new epoch, ending any older writer's rights."""
        ...

    def check_epoch(self) -> None:
        """Raise `FencedError` unless this writer's epoch is the newest; read from the store.

        Called right before each call that changes something outside.
        """
        ...

    def request(self, instance: Instance, *, caps: Caps, exit_s: float, now_s: float) -> None:
        """Write an intent and reserve its caps, in one transaction, before the cloud call.

        Args:
            instance: In state REQUESTED.
            caps: Limits that must hold with this instance included.
            exit_s: Time an instance may still run when money must stop: the reserve kept for
                each live instance inside the day and month caps.
            now_s: Now.

        Raises:
            CapExceededError: Nothing was written.
        """
        ...

    def save(self, instance: Instance, *events: Event) -> None:
        """Store a changed instance and events in one transaction.

        An ended instance frees its reservation, and its spend is booked, in the same
        transaction. An instance that already ended is never changed again.
        """
        ...

    def append(self, *events: Event) -> None:
        """Store events alone."""
        ...

    def live_instances(self) -> Sequence[Instance]:
        """Return all instances not ended, oldest first."""
        ...

    def instance(self, instance_id: str) -> Instance | None:
        """Return one instance, ended or not."""
        ...

    def instances(self, *, limit: int = 1000) -> Sequence[Instance]:
        """Return instances, ended ones included, newest first."""
        ...

    def events(
        self, *, after_seq: int = 0, limit: int = 1000, subject: str = ""
    ) -> Sequence[Event]:
        """Return events in order of `seq`; with `after_seq=0`, the last `limit` of them."""
        ...

    def spends(self, *, since_s: float = 0.0) -> Sequence[Spend]:
        """Return booked spend of ended instances whose life ended after `since_s`."""
        ...

    def payments(self, *, now_s: float) -> Sequence[Payment]:
        """Return the booked money of this month, in as few pieces as add up the same today.

        A month may have ten thousand ended instances, and each tick adds their money up.
        """
        ...

    def failures(self) -> Sequence[OfferFailure]:
        """Return offers that failed, also those whose time has passed."""
        ...

    def save_failure(self, failure: OfferFailure) -> None:
        """Store the newest failure of an offer."""
        ...

    def clear_failure(self, key: str) -> None:
        """Forget the failures of an offer or scope after a success."""
        ...

    def mode(self) -> Mode:
        """Return the operator's switches."""
        ...

    def set_mode(self, mode: Mode) -> None:
        """Store the operator's switches."""
        ...

    def job(self, job_id: str) -> Job | None:
        """Return one job."""
        ...

    def jobs(self, *, is_live_only: bool = False, limit: int | None = 1000) -> Sequence[Job]:
        """Return jobs, newest first; live ones oldest first when `is_live_only`.

        Args:
            is_live_only: Leave out those that have ended.
            limit: How many at most; `None` for all.
        """
        ...

    def job_counts(self) -> Mapping[JobState, int]:
        """Return how many jobs are in each state; states without any may be absent."""
        ...

    def save_job(self, job: Job, *events: Event) -> None:
        """Insert or replace a job, with events, in one transaction."""
        ...

    def mark_joined(self, instance_id: str, *, now_s: float) -> bool:
        """Record the use of an instance's join token; `False` when it was used before."""
        ...

    def close(self) -> None:
        """Release the store. The epoch stays; another `acquire` ends it."""
        ...

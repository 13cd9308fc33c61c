"""What the program needs from the outside, one protocol per kind of thing.

Implementations are synchronous: the cloud SDKs are, and one tick runs in one thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hybrid.core.catalog import Catalog
from hybrid.core.models import (
    Caps,
    CloudInstance,
    ClusterView,
    Event,
    Instance,
    Job,
    JobSpec,
    JobState,
    LaunchSpec,
    Model,
    Offer,
    OfferFailure,
    Spend,
)


class Clock(Protocol):
    """Time, so that tests and the simulator own it."""

    def now_s(self) -> float:
        """Return seconds since the epoch, UTC. May jump; for stored instants only."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never go back. For durations."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Wait; returns at once when `duration_s` is not positive."""
        ...


class Provider(Protocol):
    """One cloud account that rents instances.

    Implementations are *idempotent* (one token never rents two machines), may be
    *eventually consistent* (`list_instances` can lag a launch), and translate every SDK
    exception into `hybrid.core.errors`. They never retry, sleep, log or share code.
    """

    @property
    def name(self) -> str:
        """Name of the provider block in the configuration; unique in a cluster."""
        ...

    @property
    def list_lag_s(self) -> float:
        """Longest time a launched instance may be missing from `list_instances`.

        Absence is no proof before this has passed; 0 for a list that is always true.
        """
        ...

    def offers(self) -> Sequence[Offer]:
        """Return what can be rented, with prices and, where known, stock.

        Raises:
            ProviderError: The list could not be read; the last one stays in force.
        """
        ...

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """Rent one instance and return the cloud's id for it.

        The same `token` returns the same machine, also when the first answer was lost.
        Owner tags (`spec.tags`) go inside the create call.

        Args:
            offer: What to rent.
            spec: Frozen with the token.
            token: Idempotency token.
            join_token: One-time secret for the node; goes into user data only.

        Raises:
            CapacityError: Sold out; nothing was rented.
            QuotaError: Our limit; nothing was rented.
            InvalidRequestError: Never going to work; nothing was rented.
            AuthError: Nothing was rented.
            ThrottledError: Nothing was rented; try the same call again.
            TransientError: Unknown whether something was rented; same call, same token.
        """
        ...

    def list_instances(self) -> Sequence[CloudInstance]:
        """Return every instance that carries exactly our owner tags.

        Ended ones are included for as long as the cloud still lists them.

        Raises:
            ProviderError: The list could not be read. It is then *unknown*, not empty.
        """
        ...

    def terminate(self, provider_ids: Collection[str]) -> None:
        """Ask the cloud to end instances.

        Returns before they are gone; repeat until the list says `GONE` or this raises
        `NotFoundError`.

        Raises:
            NotFoundError: None of them exists.
            ProviderError: Nothing is known about the outcome; call again.
        """
        ...

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """Move the instances' own expiry to `until_s`, seconds since the epoch.

        Raises:
            NotFoundError: None of them exists.
            ProviderError: The old expiry may still be in force.
        """
        ...


class DrainKind(StrEnum):
    """How hard a drain is."""

    IDLE = "idle"
    """Ray checks and ends the node in one step, or refuses because work arrived."""
    BUSY = "busy"
    """No new work; running work goes on. Cannot be refused, has a deadline that we enforce."""


class DrainReply(Model):
    """Ray's answer to a drain."""

    is_accepted: bool
    message: str = ""


class Cluster(Protocol):
    """The Ray cluster: what it has, what it cannot place, and the drain."""

    def view(self) -> ClusterView:
        """Return nodes and waiting work as of now. `Demand.waiting_s` is not filled.

        Raises:
            ClusterError: Ray is unreachable.
        """
        ...

    def drain(
        self, node_id: str, *, kind: DrainKind, deadline_at_s: float, message: str
    ) -> DrainReply:
        """Ask Ray to empty a node. `deadline_at_s` matters for `BUSY` only.

        Raises:
            ClusterError: Ray is unreachable; the drain may have been accepted.
        """
        ...


class JobStatus(Model):
    """What Ray says about a job."""

    state: JobState
    message: str = ""
    started_at_s: float | None = None
    ended_at_s: float | None = None


class JobRunner(Protocol):
    """Runs drivers: Ray Jobs."""

    def submit(self, job_id: str, spec: JobSpec, *, selector: Mapping[str, str]) -> None:
        """Start the job; a second call with the same id changes nothing.

        Raises:
            ClusterError: Unreachable; the job may have been started.
            JobError: Ray refuses it for good.
        """
        ...

    def statuses(self) -> Mapping[str, JobStatus]:
        """Return the state of every job Ray knows, by our id.

        Raises:
            ClusterError: Unreachable.
        """
        ...

    def stop(self, job_id: str) -> None:
        """Ask Ray to end the job; unknown or ended jobs are left alone.

        Raises:
            ClusterError: Unreachable.
        """
        ...

    def logs(self, job_id: str) -> str:
        """Return all output of the job so far.

        Raises:
            ClusterError: Unreachable.
            JobError: Ray does not know the job (yet, or any more).
        """
        ...

    def follow_logs(self, job_id: str) -> Iterator[str]:
        """Yield output as it comes, until the job ends. Raises as `logs`."""
        ...

    def upload(self, name: str, content: bytes) -> None:
        """Store a zipped working directory under `name`, if it is not there yet.

        Raises:
            ClusterError: Unreachable.
        """
        ...


class Packages(Protocol):
    """Uploaded working directories."""

    def put(self, name: str, content: bytes) -> None:
        """Store a package; a known name changes nothing, since names are made from contents.

        Raises:
            HybridError: There is no room.
            JobError: The name cannot be one.
        """
        ...

    def get(self, name: str) -> bytes:
        """Return a package. Raises `JobError` when it is not there."""
        ...

    def keep_only(self, names: Collection[str]) -> None:
        """Forget all other packages."""
        ...


class JobLogs(Protocol):
    """The output of ended jobs, kept when nodes have left and Ray has forgotten them."""

    def put(self, job_id: str, text: str) -> None:
        """Keep a job's output, as much of its end as there is room for. Never raises."""
        ...

    def get(self, job_id: str) -> str | None:
        """Return a job's kept output, or `None` when there is none."""
        ...


class HostState(StrEnum):
    """Where an on-prem host is. There is no verb to terminate one."""

    ABSENT = "absent"
    JOINING = "joining"
    JOINED = "joined"
    FAILED = "failed"


class HostStatus(Model):
    """What the fleet knows of a host.

    Attributes:
        shape: Ray resources it brings when it has joined.
        problem: Why it failed, and what to do.
    """

    host: str
    state: HostState
    shape: Mapping[str, float]
    problem: str = ""
    pids: tuple[int, ...] = ()


class Fleet(Protocol):
    """The on-prem hosts. The only verbs are join, leave and probe."""

    def hosts(self) -> Sequence[str]:
        """Return the names of all configured hosts, in order."""
        ...

    def join(self, host: str) -> None:
        """Start a Ray node on the host; returns before it has joined. Idempotent.

        Raises:
            FleetError: It could not even be tried.
        """
        ...

    def leave(self, host: str) -> None:
        """End the Ray node on the host, if there is one. Idempotent.

        Raises:
            FleetError: It may still run.
        """
        ...

    def probe(self, host: str) -> HostStatus:
        """Return the host's state as seen from its own machine.

        Raises:
            FleetError: The host cannot be reached; its state is unknown.
        """
        ...


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

    def failures(self) -> Sequence[OfferFailure]:
        """Return offers that failed, also those whose time has passed."""
        ...

    def save_failure(self, failure: OfferFailure) -> None:
        """Store the newest failure of an offer."""
        ...

    def clear_failure(self, offer_id: str) -> None:
        """Forget an offer's failures after a success."""
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

    def jobs(self, *, is_live_only: bool = False, limit: int = 1000) -> Sequence[Job]:
        """Return jobs, newest first; live ones oldest first when `is_live_only`."""
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


@dataclass(frozen=True)
class ProviderContext:
    """What every provider gets beside its own settings.

    Attributes:
        cluster_id: Owner tag of everything it rents.
        cluster_name: For names people see.
        state_dir: A folder of its own on the head host.
        ray_dir: A short folder for Ray's sockets on the head host (paths have a limit of 107
            bytes), used by the local provider only.
        clock: Time.
        catalog: What machines cost where neither the configuration nor the cloud says.
    """

    cluster_id: str
    cluster_name: str
    state_dir: str
    ray_dir: str
    clock: Clock
    catalog: Catalog = field(default_factory=Catalog)


class MakeProvider(Protocol):
    """The signature behind a `hybrid.providers` entry point."""

    def __call__(self, name: str, raw: Mapping[str, object], context: ProviderContext) -> Provider:
        """Return a provider.

        Args:
            name: Name of the provider block; the first part of `infra`.
            raw: Account-level settings, and under `pools` the list of this provider's
                entries of `clouds`, in order. Each has what the file says, plus `rank`.
            context: What the program gives it.

        Raises:
            pydantic.ValidationError: `raw` is wrong; its `loc` starts with `pools`, the
                entry's number, and so on.
        """
        ...

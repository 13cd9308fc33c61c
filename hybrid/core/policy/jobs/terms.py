"""How late a job is, how late it may be, and what follows for it now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hybrid.core.models import Offer
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.params import NEVER_EARLY, JobParams
from hybrid.core.policy.plan import Snapshot, Starts

# Fewer cases than these show nothing.
_LEAST_WAITED = 2.0
_LEAST_RESUMED = 4.0
# So many times the late starts that are allowed: waiting no longer can be mended by renting.
_OUT_OF_REACH = 2.0


@dataclass(frozen=True)
class Terms:
    """The clock and the allowances of one plan. Nothing here knows how long a job will run.

    Attributes:
        reserve_s: From the wish for a node to the node, plus the guard: what a job must have
            left so that a node rented for it comes in time.
        usd_per_gpu_hour: The least that a rented GPU costs; 0 when nothing can be rented.
        late_budget: How many more jobs may start later than the target for waits; negative when
            too many did, `None` when that is not known.
        is_home_soon: Whether home will probably have room about when a node would come, while
            the target for waits is out of reach.
        is_suspending_futile: Whether suspended jobs have to be rented for in the end.
        is_ahead_of_pace: Whether today's money runs ahead of its usual course to a daily cap.
        takebacks: Spot machines taken back of late, by zone, see `Snapshot`.
    """

    now_s: float
    params: JobParams
    reserve_s: float
    late_budget: float | None = None
    usd_per_gpu_hour: float = 0.0
    is_home_soon: bool = False
    is_suspending_futile: bool = False
    is_ahead_of_pace: bool = False
    takebacks: Mapping[str, float] = field(default_factory=dict)

    def progress_s(self, job: JobView) -> float:
        """Return the useful time of a job so far."""
        since_s = job.useful_from_s
        if since_s is None or since_s >= self.now_s:
            return job.progress_s
        return job.progress_s + self.now_s - since_s

    def stretch_s(self, job: JobView) -> float:
        """Return the useful time since it was last started; negative while it still loads."""
        return 0.0 if job.useful_from_s is None else self.now_s - job.useful_from_s

    def slack_s(self, job: JobView) -> float:
        """Return by how much more a job may be delayed than it was already."""
        # As `progress_s`, without the call: asked of every running job in each plan.
        since_s, progress_s = job.useful_from_s, job.progress_s
        if since_s is not None and since_s < self.now_s:
            progress_s += self.now_s - since_s
        delay_s = self.now_s - job.submitted_at_s - progress_s
        if delay_s < 0:
            delay_s = 0.0
        return job.max_wait_s + self.params.late_share * progress_s - delay_s

    def deadline_s(self, job: JobView) -> float:
        """Return when a waiting job must run again, or be late."""
        by_s = job.submitted_at_s + job.max_wait_s
        if not job.is_started:
            return by_s
        load_s = job.checkpoint.load_s if job.checkpoint else 0.0
        return by_s + job.progress_s * (1 + self.params.late_share) - load_s

    def last_moment_s(self, job: JobView) -> float:
        """Return the last moment at which renting for a waiting job is in time.

        A job with checkpoints keeps enough to come home later.
        """
        return self.deadline_s(job) - self.reserve_s - job.trip_s

    def may_rent(self, job: JobView) -> bool:
        """Return whether money may be spent on a waiting job now, as far as it is concerned."""
        if job.is_filler:
            return False
        after_s = self._rent_after_s(job)
        if self.late_budget is not None and self.late_budget < 0:
            after_s = 0.0 if after_s < NEVER_EARLY else after_s
        if self.is_home_soon:
            after_s = max(after_s, self.reserve_s)
        if self.is_ahead_of_pace:
            after_s = NEVER_EARLY
        return self._is_due(job, after_s)

    def is_last_moment(self, job: JobView) -> bool:
        """Return whether a waiting job would be late if nothing were rented for it now."""
        return self.now_s >= self.last_moment_s(job)

    def may_make_room(self, job: JobView) -> bool:
        """Return whether others may be stopped for a waiting job now, out of their slack."""
        if job.is_filler:
            return False
        return self._is_due(job, min(self.params.suspend_after_s, self._rent_after_s(job)))

    def spare_s(self, job: JobView) -> float:
        """Return how long a running job could stay away and still be in time.

        After two interruptions, back to the queue and home from a rented node, and a boot.
        """
        trip_s = job.checkpoint.trip_s if job.checkpoint else 0.0
        return self.slack_s(job) - 2 * trip_s - self.reserve_s

    def may_interrupt(self, job: JobView, *, keep: int = 0) -> bool:
        """Return whether a job may be stopped once more.

        Args:
            job: A running job.
            keep: Interruptions that must be left afterwards, for the way home.
        """
        if job.checkpoint is None:
            return False
        params, needed = self.params, job.interruption_count + keep + 1
        # Most have this many without having earned any.
        if needed <= params.interruptions:
            return True
        return needed <= params.interruptions + self.progress_s(job) / params.interruption_earn_s

    def may_suspend(self, job: JobView) -> bool:
        """Return whether the quota of suspensions allows one more."""
        params = self.params
        if job.suspension_count < params.suspensions:
            return True
        earned = self.progress_s(job) / params.suspension_earn_s
        return job.suspension_count < params.suspensions + earned

    def _rent_after_s(self, job: JobView) -> float:
        if job.max_wait_s >= self.params.patient_from_s:
            return NEVER_EARLY
        return self.params.rent_after_s + self.params.rent_after_gpu_s * job.gpus

    def _is_due(self, job: JobView, after_s: float) -> bool:
        # No wait is that long: the clock starts in 1970.
        is_early = after_s < NEVER_EARLY
        is_waiting_long = (
            is_early and not job.is_started and self.now_s - job.submitted_at_s >= after_s
        )
        return is_waiting_long or self.is_last_moment(job)


def terms_of(snapshot: Snapshot, params: JobParams) -> Terms:
    """Return the clock of a plan."""
    prices = [o.usd_per_hour / o.gpu_count for o in snapshot.offers if o.gpu_count]
    return Terms(
        now_s=snapshot.now_s,
        params=params,
        reserve_s=reserve_s(snapshot.offers, snapshot.boot_s_by_offer, params),
        late_budget=late_budget(snapshot.starts, params),
        is_home_soon=is_home_soon(snapshot.starts, params),
        is_suspending_futile=is_suspending_futile(snapshot.starts, params),
        usd_per_gpu_hour=min(prices, default=0.0),
        is_ahead_of_pace=is_ahead_of_pace(snapshot, params),
        takebacks=snapshot.takebacks,
    )


def reserve_s(
    offers: Iterable[Offer], boot_s_by_offer: Mapping[str, float], params: JobParams
) -> float:
    """Return the time from the wish for a node to the node, plus the guard."""
    # Which offer it will be is not known yet; the slowest keeps every promise.
    boots = [boot_s_by_offer.get(offer.offer_id, offer.boot_s) for offer in offers]
    return max(boots, default=0.0) + params.guard_s


def late_budget(starts: Starts | None, params: JobParams) -> float | None:
    """Return how many more jobs may wait longer than the target, if that is known."""
    if starts is None:
        return None
    return (1 - params.wait_target_share) * starts.count - starts.late_count


def is_home_soon(starts: Starts | None, params: JobParams) -> bool:
    """Return whether to wait for home, since that is about as quick as renting, and free.

    Only where the target for waits is out of reach: elsewhere it decides how long jobs wait.
    """
    if starts is None or starts.waited_count < _LEAST_WAITED:
        return False
    if starts.late_count <= _OUT_OF_REACH * (1 - params.wait_target_share) * starts.count:
        return False
    return starts.soon_count >= params.soon_share * starts.waited_count


def is_ahead_of_pace(snapshot: Snapshot, params: JobParams) -> bool:
    """Return whether today's money runs ahead of its usual course to a daily cap."""
    cap_usd, share = snapshot.caps.usd_per_day, snapshot.usual_day_share
    if not cap_usd or share is None:
        return False
    spent_share = snapshot.commitment.day_usd / cap_usd
    return spent_share > params.pace_from_share and spent_share > params.pace_ratio * share


def is_suspending_futile(starts: Starts | None, params: JobParams) -> bool:
    """Return whether suspended jobs did not get back home lately."""
    if starts is None or starts.resumed_count < _LEAST_RESUMED:
        return False
    return starts.resumed_out_count >= params.futile_share * starts.resumed_count

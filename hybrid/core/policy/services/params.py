"""Every threshold of the policy for services, with its unit and default."""

from __future__ import annotations

from pydantic import Field

from hybrid.core.models import Model


class ServiceParams(Model):
    """What an operator may tune about inference services.

    The numbers were chosen on the first seven days of one trace (ServeGen m-large) and are the
    same for every other; docs/benchmarks.md has the measurements.

    Attributes:
        fresh_s: A rate whose window ended longer ago is stale, and stale is unknown.
        spans_s: The rate is the mean over the first of these spans, longest first, unless a
            shorter one shows that it has changed.
        change_sigmas: A shorter span shows a change when its mean is off by this many of its
            own standard deviations. Lower sees a spike sooner, and more spikes that are none.
        fall_s: Spans shorter than this cannot show that the rate fell.
        assumed_dispersion: Variance of the requests in a window over their mean, while it is
            not known. 1 is Poisson.
        most_dispersion: Measured dispersion above this is taken for this.
        sigmas: So many standard deviations of the noise must fit while a loan is on its way.
        buffer_share: Share of the longest wait that the queue may fill for noise. More is
            cheaper and makes more requests wait a little.
        headroom: Capacity above the rate that is always there, as a share of the rate.
        borrow_hold_s: A borrowed GPU goes back only when it was not needed for this long. About
            what one loan costs: shorter or longer, one of the two is wasted.
        slow_every_s: How often renting is thought about.
        trend_s: The trend is the mean over this time against the same time before.
        most_growth: A forecast is never above this many times the rate now, and never below it.
        spike_share: Room for a spike, as a share of the rate. What home and loans cannot give
            of it is rented beforehand, since a boot takes minutes.
        lasting_s: Need that never fell below a level for this long is rented for, and the
            loans go back.
        rent_hold_s: A rented replica is returned only when it was not needed for this long.
        alone_spike_share: In place of `spike_share` where nothing can be borrowed: room for
            spikes comes from the longer hold then, which costs less than more room.
        alone_hold_s: In place of `rent_hold_s` there. About what a boot costs: without loans each
            return that was too early is paid for with one.
        rents_per_plan: At most so many new rented replicas in one plan.
        assumed_boot_s: From order to a rented replica that serves, while it is not learned.
        pattern_days: A rise at this time of day is expected when it came on each of so many days.
    """

    fresh_s: float = Field(default=60.0, gt=0)
    spans_s: tuple[float, ...] = Field(default=(300.0, 120.0, 60.0, 30.0, 20.0, 10.0), min_length=1)
    change_sigmas: float = Field(default=3.5, ge=0)
    fall_s: float = Field(default=30.0, ge=0)
    assumed_dispersion: float = Field(default=4.0, ge=1)
    most_dispersion: float = Field(default=50.0, ge=1)
    sigmas: float = Field(default=2.0, ge=0)
    buffer_share: float = Field(default=0.5, ge=0, le=1)
    headroom: float = Field(default=0.0, ge=0)
    borrow_hold_s: float = Field(default=190.0, ge=0)
    slow_every_s: float = Field(default=60.0, gt=0)
    trend_s: float = Field(default=300.0, gt=0)
    most_growth: float = Field(default=1.5, ge=1, le=2)
    spike_share: float = Field(default=0.2, ge=0)
    lasting_s: float = Field(default=3_600.0, gt=0)
    rent_hold_s: float = Field(default=300.0, ge=0)
    alone_spike_share: float = Field(default=0.05, ge=0)
    alone_hold_s: float = Field(default=900.0, ge=0)
    rents_per_plan: int = Field(default=20, ge=1)
    assumed_boot_s: float = Field(default=750.0, gt=0)
    pattern_days: int = Field(default=2, ge=1)

    def for_lenders(self, borrowable_count: int | None) -> ServiceParams:
        """Return what holds where so much can be borrowed; `None` when that is not known."""
        if borrowable_count != 0:
            return self
        changes = {"spike_share": self.alone_spike_share, "rent_hold_s": self.alone_hold_s}
        return self.model_copy(update=changes)

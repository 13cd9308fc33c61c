"""What the policy sees of one service."""

from __future__ import annotations

from pydantic import Field

from hybrid.core.models import Model
from hybrid.core.policy.services.plan import ServiceMemory


class Rate(Model):
    """How many requests came in one window of time.

    Attributes:
        end_at_s: When the window ended.
        span_s: How long it was.
        rps: Requests per second; `None`, NaN and anything below 0 mean that it is not known.
    """

    end_at_s: float
    span_s: float = Field(gt=0, allow_inf_nan=False)
    rps: float | None


class ServiceView(Model):
    """Everything one decision about one service depends on. Equal views give equal plans.

    Attributes:
        tick_s: Time to the next fast decision: a spike is seen so late.
        wait_slo_s: A request that waits longer breaks the promise.
        replica_rps: What one replica serves, requests per second. One replica is one GPU.
        rates: Short windows of the last ten minutes or so, in any order.
        backlog: Requests that wait now; `None` or NaN when not known.
        dispersion: Of requests in a short window, when something better than `rates` tells.
        home_count: Replicas at home that are the service's own.
        borrowed_count, borrowing_count: Local GPUs of batch work that serve now; that are
            being freed.
        rented_count, booting_count: Rented replicas that serve now; that do not yet.
        borrowable_count: Local GPUs of batch work that may be on loan at a time, those that
            are included; `None` when not known.
        rentable_count: Rented replicas that may exist at a time.
        usd_per_hour: Price of one rented replica.
        usd_per_hour_limit: What all rented replicas may cost together; `None` for no limit.
        borrow_s: From asking for a loan until it serves, learned.
        boot_s: From order until a rented replica serves, a high quantile that was learned;
            `None` while nothing was.
        usual_growth: What the rate did on earlier days between this time and `boot_s` later,
            as a ratio; `None` without history. See `usual_growth()`.
        memory: What the last plan asked to be handed back.
    """

    service: str
    now_s: float = Field(allow_inf_nan=False)
    tick_s: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    wait_slo_s: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    replica_rps: float = Field(gt=0, allow_inf_nan=False)
    rates: tuple[Rate, ...] = ()
    backlog: float | None = None
    dispersion: float | None = None
    home_count: int = Field(default=0, ge=0)
    borrowed_count: int = Field(default=0, ge=0)
    borrowing_count: int = Field(default=0, ge=0)
    rented_count: int = Field(default=0, ge=0)
    booting_count: int = Field(default=0, ge=0)
    borrowable_count: int | None = Field(default=None, ge=0)
    rentable_count: int = Field(default=0, ge=0)
    usd_per_hour: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    usd_per_hour_limit: float | None = Field(default=None, ge=0)
    borrow_s: float = Field(default=40.0, ge=0, allow_inf_nan=False)
    boot_s: float | None = Field(default=None, gt=0)
    usual_growth: float | None = None
    memory: ServiceMemory = Field(default_factory=ServiceMemory)

    @property
    def on_loan_count(self) -> int:
        """Borrowed GPUs, those being freed included."""
        return self.borrowed_count + self.borrowing_count

    @property
    def on_rent_count(self) -> int:
        """Rented replicas, those that boot included."""
        return self.rented_count + self.booting_count

    @property
    def rent_limit_count(self) -> int:
        """The most rented replicas that count and money allow."""
        if self.usd_per_hour_limit is None or self.usd_per_hour <= 0:
            return self.rentable_count
        return min(self.rentable_count, int(self.usd_per_hour_limit / self.usd_per_hour + 1e-9))

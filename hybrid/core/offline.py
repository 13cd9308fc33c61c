"""The shapes of what is said without a controller and without asking a cloud. Stable, as `views`.

Prices are in US dollars per hour. `None` means unknown, never zero.
"""

from __future__ import annotations

import datetime as dt

from pydantic import Field

from hybrid.core.models import Model, Reason, Shape
from hybrid.core.policy.plan import Finding
from hybrid.core.views import API_VERSION


class PoolView(Model):
    """A pool of hybrid.yaml, by configuration and price list alone.

    Attributes:
        pool: Where it is in hybrid.yaml, such as `clouds.any_of[0]`.
        offer_id: What it offers; see the plan of a running cluster.
        gpus: GPUs of one instance, such as `A100:8`; `""` for none.
        gpu_count: `null` when nobody says.
        usd_per_hour: `null` when it is no offer; `reason` then says why.
        at_most_usd_per_hour: The most that one instance can cost, where that is known.
        is_own_price: Whether the price is yours, from hybrid.yaml.
        price_source: Where the price is from: a `source_id` of `hybrid offers`, or a place in
            hybrid.yaml.
        as_of: Day of a listed price; `null` for yours.
        max_count: At most so many instances at a time; `null` for no limit of its own.
        reason: Why it is no offer.
    """

    pool: str
    provider: str
    offer_id: str
    instance_type: str
    market: str
    gpus: str = ""
    gpu_count: int | None = None
    usd_per_hour: float | None = None
    at_most_usd_per_hour: float | None = None
    is_own_price: bool = False
    price_source: str = ""
    as_of: dt.date | None = None
    max_count: int | None = None
    reason: Reason | None = None


class RentedView(Model):
    """What a plan rents of one offer.

    Attributes:
        pool: The pool that offers it.
        count: Instances.
        usd_per_hour: Of all of them.
        reason: Why, as in the plan of a running cluster.
    """

    pool: PoolView
    count: int
    usd_per_hour: float
    reason: Reason


class SparedView(Model):
    """A pool of which a plan rents nothing.

    Attributes:
        reason: Why: it is no offer, cannot hold the request, is limited, or is not needed.
    """

    pool: PoolView
    reason: Reason


class OfflinePlanView(Model):
    """`hybrid plan --offline --json`: what the policy does for some waiting work.

    Attributes:
        source: The configuration.
        shape: Of one request.
        count: How many of it wait, all of them longer than the queue limit allows.
        is_home_busy: Whether your own machines were taken to be full.
        home_count: Requests that your own machines take.
        cloud_count: Requests that rented machines take.
        waiting_count: Requests that go on waiting; `findings` says why.
        rented: What is rented, in the order of the decision.
        usd_per_hour: Of all that is rented.
        tick_count: Looks of the controller that all launches take.
        findings: Waiting work and what becomes of it, with reasons.
        spared: The other pools, with reasons.
        notes: What this answer does not know.
    """

    api_version: int = API_VERSION
    cluster: str
    source: str
    summary: str
    shape: Shape
    count: int
    is_home_busy: bool
    home_count: int
    cloud_count: int
    waiting_count: int
    rented: tuple[RentedView, ...] = ()
    usd_per_hour: float
    tick_count: int = Field(ge=0)
    findings: tuple[Finding, ...] = ()
    spared: tuple[SparedView, ...] = ()
    notes: tuple[str, ...] = ()

"""How many replicas a service needs until a loan that is asked for now can serve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.core.policy.services.params import ServiceParams
from hybrid.core.policy.services.rates import dispersion_of, growth, known, known_rates, level_rps
from hybrid.core.policy.services.view import ServiceView


@dataclass(frozen=True, slots=True)
class Look:
    """What a view says once what is not known is left out.

    Attributes:
        rate_rps: The rate now; `None` when not known.
        backlog: Requests that wait; `None` when not known.
        dispersion: Variance of requests over their mean.
        growth: Times the rate that is expected after a boot, at least 1.
    """

    rate_rps: float | None
    backlog: float | None
    dispersion: float
    growth: float

    @property
    def is_whole(self) -> bool:
        """Whether enough is known to shrink."""
        return self.rate_rps is not None and self.backlog is not None


def look(view: ServiceView, params: ServiceParams) -> Look:
    """Return what is known of a service."""
    rates = known_rates(view, params)
    dispersion = dispersion_of(view, rates, params)
    if not rates:
        return Look(None, known(view.backlog), dispersion, 1.0)
    rate_rps = level_rps(rates, dispersion, params)
    return Look(rate_rps, known(view.backlog), dispersion, growth(view, rates, params))


def need_count(view: ServiceView, seen: Look, params: ServiceParams) -> int:
    """Return the replicas that keep the promise until a new loan serves.

    In that time the backlog, what comes, and its noise must be served, but for what may wait
    then without breaking the promise. An unknown rate counts as at least nothing: then only a
    backlog can make the service grow, and nothing makes it shrink.
    """
    rate = seen.rate_rps or 0.0
    horizon_s = view.borrow_s + view.tick_s
    noise = params.sigmas * math.sqrt(seen.dispersion * rate * horizon_s)
    work = (seen.backlog or 0.0) + rate * horizon_s + noise
    rps = work / (horizon_s + params.buffer_share * view.wait_slo_s)
    return math.ceil(max(rps, rate * (1 + params.headroom)) / view.replica_rps - 1e-9)

"""The fast loop: loans from local batch work, for what a spike needs."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.core.models import Reason
from hybrid.core.policy.services.need import Look
from hybrid.core.policy.services.params import ServiceParams
from hybrid.core.policy.services.plan import Borrow, GiveBack, ServiceAction
from hybrid.core.policy.services.view import ServiceView
from hybrid.core.policy.services.why import Why
from hybrid.core.policy.words import number, plural


def fast_actions(
    view: ServiceView, seen: Look, need: int, keep: int | None, params: ServiceParams
) -> Iterator[ServiceAction | Reason]:
    """Yield loans to take or give back, and what stands in the way.

    Args:
        view: The service.
        seen: What is known of it.
        need: Replicas it needs now.
        keep: Most it needed over the hold; `None` when that is not known, then nothing goes.
        params: The thresholds.
    """
    own = view.home_count + view.rented_count
    on_loan, most = view.on_loan_count, view.borrowable_count
    facts = _facts(view, seen, need)
    if most is None:
        if need - own > on_loan:
            message = "more replicas are needed, and what may be borrowed is not known"
            yield Reason(code=Why.LOAN_UNKNOWN, message=message, facts=facts)
        return
    if on_loan > most:
        message = f"only {number(most)} may be on loan now, and {number(on_loan)} are"
        reason = Reason(code=Why.LOAN_RECALLED, message=message, facts=facts)
        yield GiveBack(count=on_loan - most, reason=reason)
        return
    wanted = max(0, need - own)
    if wanted > most:
        message = f"{plural(wanted, 'GPU')} would help, and {number(most)} may be on loan"
        yield Reason(code=Why.LOAN_LIMIT, message=message, facts=facts)
    if (more := min(wanted, most) - on_loan) > 0:
        reason = Reason(code=Why.SERVICE_SPIKE, message=_spike(view, seen, need), facts=facts)
        yield Borrow(count=more, reason=reason)
    elif keep is not None and (spare := on_loan - max(0, keep - own)) > 0:
        message = f"{plural(keep, 'replica')} were enough for {params.borrow_hold_s:g} s"
        reason = Reason(code=Why.SERVICE_CALM, message=message, facts={**facts, "peak_count": keep})
        yield GiveBack(count=spare, reason=reason)


def _spike(view: ServiceView, seen: Look, need: int) -> str:
    have = view.home_count + view.rented_count + view.on_loan_count
    rate = "an unknown rate" if seen.rate_rps is None else f"{seen.rate_rps:.1f} requests/s"
    wait = "an unknown number" if seen.backlog is None else f"{seen.backlog:.0f}"
    return f"{rate} with {wait} waiting takes {plural(need, 'replica')}, and {have} are there"


def _facts(view: ServiceView, seen: Look, need: int) -> dict[str, float | int | str]:
    return {
        "rate_rps": "unknown" if seen.rate_rps is None else round(seen.rate_rps, 3),
        "backlog_count": "unknown" if seen.backlog is None else round(seen.backlog, 3),
        "dispersion_ratio": round(seen.dispersion, 3),
        "need_count": need,
        "home_count": view.home_count,
        "rented_count": view.rented_count,
        "on_loan_count": view.on_loan_count,
        "borrowable_count": ("unknown" if view.borrowable_count is None else view.borrowable_count),
    }

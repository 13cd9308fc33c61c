"""Decides about one service: a pure function of what is seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybrid.core.models import Reason
from hybrid.core.policy.services.fast import fast_actions
from hybrid.core.policy.services.holding import held
from hybrid.core.policy.services.need import Look, look, need_count
from hybrid.core.policy.services.params import ServiceParams
from hybrid.core.policy.services.plan import ServiceAction, ServiceMemory, ServicePlan
from hybrid.core.policy.services.slow import slow_actions, wish
from hybrid.core.policy.services.view import ServiceView
from hybrid.core.policy.services.why import Why


def decide_services(view: ServiceView, params: ServiceParams) -> ServicePlan:
    """Return what to do about one service now.

    Loans are decided each time it is called, renting once in `slow_every_s`. While the rate or
    the backlog is not known, the service may grow by what is known, and nothing shrinks until
    both were known again for a whole hold; only a cap or a lender can take something then.

    Args:
        view: What is seen of the service.
        params: The thresholds.
    """
    params = params.for_lenders(view.borrowable_count)
    seen = look(view, params)
    need = need_count(view, seen, params)
    memory = _remembered(view, seen, need, params)
    is_slow = memory.slow_at_s == view.now_s
    found: list[ServiceAction | Reason] = [*_blind(seen)]
    if is_slow:
        wished = wish(view, seen, _lasting(view, memory, params), params)
        peaks = held(memory.wanted_peaks, view.now_s, wished.count, params.rent_hold_s)
        memory = memory.model_copy(update={"wanted_peaks": peaks})
        keep = _rent_keep(view, memory, params)
        found += slow_actions(view, seen, wished, keep, params)
    found += fast_actions(view, seen, need, _loan_keep(view, memory, params), params)
    return ServicePlan(
        actions=tuple(_actions(found)),
        findings=tuple(item for item in found if isinstance(item, Reason)),
        rate_rps=seen.rate_rps,
        need_count=need if seen.rate_rps is not None else None,
        memory=memory,
    )


def _remembered(view: ServiceView, seen: Look, need: int, params: ServiceParams) -> ServiceMemory:
    old, now_s = view.memory, view.now_s
    is_slow = old.slow_at_s is None or now_s - old.slow_at_s >= params.slow_every_s - 1e-6
    slow_at_s = now_s if is_slow else old.slow_at_s
    if not seen.is_whole:
        return ServiceMemory(slow_at_s=slow_at_s)
    beyond = max(0, need - view.home_count)
    return ServiceMemory(
        known_since_s=now_s if old.known_since_s is None else old.known_since_s,
        slow_at_s=slow_at_s,
        borrow_peaks=held(old.borrow_peaks, now_s, need, params.borrow_hold_s),
        rent_peaks=held(old.rent_peaks, now_s, beyond, params.rent_hold_s),
        wanted_peaks=old.wanted_peaks,
        lows=held(old.lows, now_s, -beyond, params.lasting_s),
    )


def _is_known_for(view: ServiceView, memory: ServiceMemory, span_s: float) -> bool:
    """Whether rate and backlog were known for that long, so that a peak of it is one."""
    since_s = memory.known_since_s
    return since_s is not None and view.now_s - since_s >= span_s - 1e-6


def _lasting(view: ServiceView, memory: ServiceMemory, params: ServiceParams) -> int:
    return -memory.lows[0][1] if _is_known_for(view, memory, params.lasting_s) else 0


def _loan_keep(view: ServiceView, memory: ServiceMemory, params: ServiceParams) -> int | None:
    is_known = _is_known_for(view, memory, params.borrow_hold_s)
    return _peak(memory.borrow_peaks) if is_known else None


def _rent_keep(view: ServiceView, memory: ServiceMemory, params: ServiceParams) -> int | None:
    """Return how many rented replicas stay; `None` when that is not known.

    Those the slow loop wanted, and those that worked: the work of a replica that is there
    would only go to a loan.
    """
    if not _is_known_for(view, memory, params.rent_hold_s):
        return None
    return max(_peak(memory.wanted_peaks), min(view.on_rent_count, _peak(memory.rent_peaks)))


def _peak(entries: tuple[tuple[float, int], ...]) -> int:
    return entries[0][1] if entries else 0


def _blind(seen: Look) -> Iterator[Reason]:
    if seen.rate_rps is None:
        message = "the rate of requests is not known, so nothing shrinks"
        yield Reason(code=Why.RATE_UNKNOWN, message=message)
    if seen.backlog is None:
        message = "how many requests wait is not known, so nothing shrinks"
        yield Reason(code=Why.BACKLOG_UNKNOWN, message=message)


def _actions(found: Iterable[ServiceAction | Reason]) -> Iterator[ServiceAction]:
    for item in found:
        if not isinstance(item, Reason):
            yield item

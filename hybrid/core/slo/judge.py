"""The judgement over a window."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from hybrid.core.slo.reading import Judgement, Reading, Slo, SloState

_LEAST_COUNT = 2
_HALF = 0.5


def judge(readings: Sequence[Reading], slo: Slo, before: Judgement, *, now_s: float) -> Judgement:
    """Return whether a promise is kept.

    Unknown, unless at least two readings and half of the window have a value. Broken when most of
    the measured time is over the target, so one outlier never breaks it; kept again when little of
    it is.

    Args:
        readings: Of the last window at least, in any order; older ones are left out.
        slo: The promise.
        before: The judgement before this one.
        now_s: Now, by the readings' clock.
    """
    # The next reading is on its way: without the one before the window there would be gaps.
    oldest_s = now_s - slo.window_s - slo.step_s / 2
    recent = sorted(
        (r for r in readings if oldest_s < r.at_s <= now_s and r.span_s > 0), key=lambda r: r.at_s
    )
    known = [r for r in recent if r.known_ms is not None]
    span_s = sum(r.span_s for r in known)
    if len(known) < _LEAST_COUNT or span_s < slo.window_s * _HALF:
        return _unknown(recent, known, slo, before, now_s=now_s)
    over = [r for r in known if (r.known_ms or 0.0) > slo.target_ms]
    share = sum(r.span_s for r in over) / span_s
    was_broken = before.known_state is SloState.BROKEN
    limit = slo.mend_share if was_broken else slo.break_share
    is_broken = share > limit and (was_broken or len(over) >= _LEAST_COUNT)
    state = SloState.BROKEN if is_broken else SloState.MET
    value_ms = median(r.known_ms or 0.0 for r in known)
    return Judgement(
        state=state,
        since_s=_since(state, before, over, now_s=now_s),
        value_ms=value_ms,
        why=_words(slo, value_ms, share, state),
        rate_rps=_rate(known),
        known_state=state,
    )


def _since(
    state: SloState, before: Judgement, over: Sequence[Reading], *, now_s: float
) -> float | None:
    if before.state is state:
        return before.since_s
    if state is SloState.BROKEN and over:
        return over[0].at_s - over[0].span_s
    return now_s


def _rate(known: Sequence[Reading]) -> float | None:
    rated = [(r.rate_rps, r.span_s) for r in known if r.rate_rps is not None]
    span_s = sum(span_s for _, span_s in rated)
    return sum(rate * span_s for rate, span_s in rated) / span_s if rated else None


def _words(slo: Slo, value_ms: float, share: float, state: SloState) -> str:
    over = f"{share:.0%} of the last {slo.window_s:g} s over {slo.target_ms:g} ms"
    measured = f"p{slo.percentile:g} is {value_ms:.0f} ms, {over}"
    if state is SloState.MET and share > 0:
        return f"{measured}: too little to call it broken"
    return measured


def _unknown(
    recent: Sequence[Reading],
    known: Sequence[Reading],
    slo: Slo,
    before: Judgement,
    *,
    now_s: float,
) -> Judgement:
    silent = [r.why for r in reversed(recent) if r.known_ms is None and r.why]
    if silent:
        why = silent[0]
    elif recent:
        why = (
            f"only {sum(r.span_s for r in known):.0f} s of the last {slo.window_s:g} s are "
            "measured so far"
        )
    else:
        why = f"nothing was measured in the last {slo.window_s:g} s"
    is_quiet = bool(recent) and all(r.is_quiet for r in recent)
    span_s = sum(r.span_s for r in recent)
    return Judgement(
        state=SloState.UNKNOWN,
        since_s=before.since_s if before.state is SloState.UNKNOWN else now_s,
        why=why,
        rate_rps=0.0 if is_quiet else None,
        known_state=before.known_state,
        is_quiet=is_quiet and span_s >= slo.window_s * _HALF,
    )

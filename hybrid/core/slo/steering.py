"""How many replicas come next: more on a breach, the same on unknown, fewer slowly."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.core.slo.reading import Judgement, Load, Slo, SloState
from hybrid.core.slo.replicas import need_count


@dataclass(frozen=True, slots=True)
class SteeringParams:
    """When replicas go back.

    Attributes:
        calm_s: One replica fewer must have been enough for this long.
        step_s: Time between two replicas that go.
        room: One fewer is enough when the rate is at most this share of what those are known to
            serve.
        silent_s: Without any request, when that was seen and not merely not known, a replica goes
            after this long; `None`: never.
        forget_s: What a replica can serve is forgotten so long after the last breach: a breach
            that had another cause must not hold replicas for ever.
    """

    calm_s: float = 300.0
    step_s: float = 60.0
    room: float = 0.75
    silent_s: float | None = 600.0
    forget_s: float = 3_600.0


@dataclass(frozen=True, slots=True)
class Steering:
    """What the next step needs of those before.

    Attributes:
        capacity_rps: What one replica served while the promise was broken: all that it can.
        capacity_at_s: When that was seen.
        calm_since_s: Since when one replica fewer would have been enough.
        silent_since_s: Since when no request came.
        changed_at_s: When the number of replicas last changed.
        counts: Running and wanted replicas then.
        why: One sentence on the last step.
    """

    capacity_rps: float | None = None
    capacity_at_s: float | None = None
    calm_since_s: float | None = None
    silent_since_s: float | None = None
    changed_at_s: float | None = None
    counts: tuple[int, int] | None = None
    why: str = ""


def steer(
    memory: Steering,
    judgement: Judgement,
    load: Load,
    slo: Slo,
    params: SteeringParams,
    *,
    now_s: float,
) -> tuple[int, Steering]:
    """Return how many replicas there should be, and what to hand back next time.

    Broken: more, once the last change has had a whole window to show. Unknown: as many as are
    wanted now, never fewer; but for silence that was seen. Kept: one fewer at a time, when what
    runs has been more than enough for long.

    Args:
        memory: What was handed back last time.
        judgement: Whether the promise holds.
        load: What the service has; `running` and `target` must be known.
        slo: The promise.
        params: When replicas go back.
        now_s: Now, by the judgement's clock.
    """
    running, target = load.running or 0, load.target or 0
    memory = _noted(memory, running, target, params, now_s=now_s)
    match judgement.state:
        case SloState.BROKEN:
            return _raised(memory, judgement, load, slo, now_s=now_s)
        case SloState.MET:
            memory = _learned(memory, judgement, running, params, now_s=now_s)
            return _lowered(memory, judgement, target, slo, params, now_s=now_s)
        case SloState.UNKNOWN:
            return _held(memory, judgement, load, params, now_s=now_s)


def _noted(
    memory: Steering, running: int, target: int, params: SteeringParams, *, now_s: float
) -> Steering:
    counts = (running, target)
    if memory.counts is None:
        # Nothing is known of an earlier change: what runs is taken to have run for long.
        return replace(memory, counts=counts)
    if memory.counts == counts:
        return memory
    has_gone = target < memory.counts[1]
    again_s = now_s - params.calm_s + params.step_s
    return replace(
        memory,
        counts=counts,
        changed_at_s=now_s,
        calm_since_s=_later(memory.calm_since_s, again_s) if has_gone else memory.calm_since_s,
        silent_since_s=(
            _later(memory.silent_since_s, now_s - (params.silent_s or 0.0) + params.step_s)
            if has_gone
            else memory.silent_since_s
        ),
    )


def _later(since_s: float | None, least_s: float) -> float | None:
    return None if since_s is None else max(since_s, least_s)


def _raised(
    memory: Steering, judgement: Judgement, load: Load, slo: Slo, *, now_s: float
) -> tuple[int, Steering]:
    running, target = load.running or 0, load.target or 0
    memory = replace(memory, calm_since_s=None, silent_since_s=None)
    memory = _overloaded(memory, judgement, running, now_s=now_s)
    if running < target:
        why = f"{judgement.why}; {running} of {target} replicas run, the others start"
        return target, replace(memory, why=why)
    changed_s = memory.changed_at_s
    if changed_s is not None and now_s - changed_s < slo.window_s:
        why = f"{judgement.why}; {target} replicas have not had a whole window to show"
        return target, replace(memory, why=why)
    count = max(target, need_count(judgement, load, slo, now_s=now_s) or target + 1)
    return count, replace(memory, why=f"{judgement.why}; {count} replicas instead of {target}")


def _overloaded(memory: Steering, judgement: Judgement, running: int, *, now_s: float) -> Steering:
    """Return the memory with the most that a replica served during this breach.

    Not the last: a breach is seen for a while after the rate has fallen.
    """
    if not running or not judgement.rate_rps:
        return memory
    begun_s = now_s if judgement.since_s is None else judgement.since_s
    is_same = memory.capacity_at_s is not None and memory.capacity_at_s >= begun_s
    before_rps = memory.capacity_rps if is_same and memory.capacity_rps else 0.0
    capacity_rps = max(before_rps, judgement.rate_rps / running)
    return replace(memory, capacity_rps=capacity_rps, capacity_at_s=now_s)


def _held(
    memory: Steering, judgement: Judgement, load: Load, params: SteeringParams, *, now_s: float
) -> tuple[int, Steering]:
    target = load.target or 0
    memory = replace(memory, calm_since_s=None)
    is_silent = judgement.is_quiet and load.in_system == 0
    if not is_silent or params.silent_s is None:
        why = f"not known, so nothing shrinks: {judgement.why}"
        return target, replace(memory, silent_since_s=None, why=why)
    since_s = now_s if memory.silent_since_s is None else memory.silent_since_s
    memory = replace(memory, silent_since_s=since_s)
    if now_s - since_s < params.silent_s:
        return target, replace(memory, why="no request comes")
    why = f"no request came for {now_s - since_s:.0f} s: one replica goes"
    return max(0, target - 1), replace(memory, why=why)


def _learned(
    memory: Steering, judgement: Judgement, running: int, params: SteeringParams, *, now_s: float
) -> Steering:
    """Return the memory with what replicas serve while the promise holds: they can do that much."""
    if memory.capacity_rps is None or memory.capacity_at_s is None:
        return memory
    if now_s - memory.capacity_at_s > params.forget_s:
        return replace(memory, capacity_rps=None, capacity_at_s=None)
    served_rps = (judgement.rate_rps or 0.0) / running if running else 0.0
    return replace(memory, capacity_rps=max(memory.capacity_rps, served_rps))


def _lowered(
    memory: Steering,
    judgement: Judgement,
    target: int,
    slo: Slo,
    params: SteeringParams,
    *,
    now_s: float,
) -> tuple[int, Steering]:
    memory = replace(memory, silent_since_s=None)
    if not _is_one_too_many(memory, judgement, target, slo, params):
        return target, replace(memory, calm_since_s=None, why=judgement.why)
    since_s = now_s if memory.calm_since_s is None else memory.calm_since_s
    memory = replace(memory, calm_since_s=since_s)
    if now_s - since_s < params.calm_s:
        return target, replace(memory, why=judgement.why)
    why = f"{judgement.why}; {target - 1} replicas have been enough for {params.calm_s:g} s"
    return target - 1, replace(memory, why=why)


def _is_one_too_many(
    memory: Steering, judgement: Judgement, target: int, slo: Slo, params: SteeringParams
) -> bool:
    """Return whether one replica fewer would keep the promise too.

    By what a replica is known to serve; before any breach has shown that, by a latency of less
    than half of the target.
    """
    if target <= 1:
        return False
    if memory.capacity_rps is not None:
        rate = judgement.rate_rps
        return rate is not None and rate <= params.room * memory.capacity_rps * (target - 1)
    return judgement.value_ms is not None and judgement.value_ms <= slo.target_ms / 2

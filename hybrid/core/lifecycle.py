"""The one table of legal changes of an instance's state, and who waits for what."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hybrid.core.errors import IllegalTransitionError
from hybrid.core.models import Instance, InstanceState, Model


class Fact(StrEnum):
    """Something that happened to an instance; the past tense is meant."""

    LAUNCH_ACCEPTED = "launch_accepted"
    LAUNCH_REFUSED = "launch_refused"
    LAUNCH_OVERDUE = "launch_overdue"
    FOUND_IN_CLOUD = "found_in_cloud"
    NODE_JOINED = "node_joined"
    JOIN_OVERDUE = "join_overdue"
    NODE_FAILED = "node_failed"
    DRAIN_STARTED = "drain_started"
    DRAIN_REFUSED = "drain_refused"
    DRAINED = "drained"
    DRAIN_OVERDUE = "drain_overdue"
    TERMINATE_ASKED = "terminate_asked"
    MISSING = "missing"
    GONE = "gone"


_S = InstanceState
_F = Fact

TRANSITIONS: Mapping[tuple[InstanceState, Fact], InstanceState] = {
    (_S.REQUESTED, _F.LAUNCH_ACCEPTED): _S.BOOTING,
    (_S.REQUESTED, _F.FOUND_IN_CLOUD): _S.BOOTING,
    (_S.REQUESTED, _F.LAUNCH_REFUSED): _S.FAILED,
    # The create call timed out for good: a live liability until the cloud proves otherwise.
    (_S.REQUESTED, _F.LAUNCH_OVERDUE): _S.LOST,
    (_S.REQUESTED, _F.GONE): _S.TERMINATED,
    (_S.BOOTING, _F.NODE_JOINED): _S.RUNNING,
    (_S.BOOTING, _F.JOIN_OVERDUE): _S.TERMINATING,
    (_S.BOOTING, _F.NODE_FAILED): _S.TERMINATING,
    (_S.BOOTING, _F.TERMINATE_ASKED): _S.TERMINATING,
    (_S.BOOTING, _F.MISSING): _S.LOST,
    (_S.BOOTING, _F.GONE): _S.TERMINATED,
    (_S.RUNNING, _F.DRAIN_STARTED): _S.DRAINING,
    (_S.RUNNING, _F.NODE_FAILED): _S.TERMINATING,
    (_S.RUNNING, _F.TERMINATE_ASKED): _S.TERMINATING,
    (_S.RUNNING, _F.MISSING): _S.LOST,
    (_S.RUNNING, _F.GONE): _S.TERMINATED,
    # Ray refused: work arrived in between. The node is as good as before.
    (_S.DRAINING, _F.DRAIN_REFUSED): _S.RUNNING,
    (_S.DRAINING, _F.DRAINED): _S.TERMINATING,
    (_S.DRAINING, _F.DRAIN_OVERDUE): _S.TERMINATING,
    (_S.DRAINING, _F.NODE_FAILED): _S.TERMINATING,
    (_S.DRAINING, _F.TERMINATE_ASKED): _S.TERMINATING,
    (_S.DRAINING, _F.MISSING): _S.LOST,
    (_S.DRAINING, _F.GONE): _S.TERMINATED,
    (_S.TERMINATING, _F.GONE): _S.TERMINATED,
    (_S.TERMINATING, _F.MISSING): _S.LOST,
    # Seen again after it was given up: whatever it is now, it is not ours to use any more.
    (_S.LOST, _F.FOUND_IN_CLOUD): _S.TERMINATING,
    (_S.LOST, _F.TERMINATE_ASKED): _S.TERMINATING,
    (_S.LOST, _F.GONE): _S.TERMINATED,
}

ENDED = frozenset({_S.TERMINATED, _S.FAILED})


class Deadlines(Model):
    """How long each transient state may last, seconds; defaults from reliability.md.

    Attributes:
        launch_s: REQUESTED until the cloud accepted or refused.
        join_s: BOOTING until its node is in Ray.
        drain_s: DRAINING a busy node.
        idle_drain_s: DRAINING an idle node, which Ray ends at once.
        terminate_s: TERMINATING until an alarm is raised; the calls go on for ever.
    """

    launch_s: float = 300.0
    join_s: float = 900.0
    drain_s: float = 1800.0
    idle_drain_s: float = 60.0
    terminate_s: float = 300.0


def advance(
    instance: Instance,
    fact: Fact,
    *,
    now_s: float,
    deadlines: Deadlines,
    problem: str = "",
) -> Instance:
    """Return the instance after `fact`, with the deadline of its new state.

    Args:
        instance: Before the fact.
        fact: What happened.
        now_s: The instant of the change.
        deadlines: Longest stay in each transient state.
        problem: What went wrong, kept on the row; `""` leaves the last one.

    Raises:
        IllegalTransitionError: The table has no such change.
    """
    target = TRANSITIONS.get((instance.state, fact))
    if target is None:
        raise IllegalTransitionError(
            f"instance {instance.instance_id}: {fact} is not possible in state {instance.state}"
        )
    changes: dict[str, object] = {
        "state": target,
        "state_at_s": now_s,
        "deadline_at_s": _deadline_at_s(target, now_s, deadlines),
        "missing_count": 0 if target is not _S.LOST else instance.missing_count,
        "missing_since_s": None if target is not _S.LOST else instance.missing_since_s,
    }
    if problem:
        changes["problem"] = problem
    if fact is _F.NODE_JOINED:
        changes["joined_at_s"] = now_s
    if fact is _F.DRAIN_REFUSED:
        changes |= {"drain_kind": "", "drain_reason": None}
    if target in ENDED:
        changes["ended_at_s"] = now_s
    return instance.model_copy(update=changes)


def overdue_fact(instance: Instance, *, now_s: float) -> Fact | None:
    """Return what a passed deadline means for the instance, or `None`.

    TERMINATING and LOST have no way out but the cloud's word, so they yield nothing here;
    the loop raises an alarm for them instead.
    """
    if instance.deadline_at_s is None or now_s < instance.deadline_at_s:
        return None
    return {
        _S.REQUESTED: _F.LAUNCH_OVERDUE,
        _S.BOOTING: _F.JOIN_OVERDUE,
        _S.DRAINING: _F.DRAIN_OVERDUE,
    }.get(instance.state)


def _deadline_at_s(state: InstanceState, now_s: float, deadlines: Deadlines) -> float | None:
    lasts_s = {
        _S.REQUESTED: deadlines.launch_s,
        _S.BOOTING: deadlines.join_s,
        _S.DRAINING: deadlines.drain_s,
        _S.TERMINATING: deadlines.terminate_s,
    }.get(state)
    return None if lasts_s is None else now_s + lasts_s

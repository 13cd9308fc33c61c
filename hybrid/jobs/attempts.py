"""What becomes of a job when an attempt of it has ended. Pure.

One attempt is one Ray job. A job that goes on after its end is `QUEUED` again, with its first
submission as its place in the order: a retry is never behind what came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hybrid.core.models import Job, JobState, Stop
from hybrid.core.models.work import Slot
from hybrid.jobs.params import QueueParams

_S = JobState
_INSTANTS = ("created_at_s", "state_at_s", "started_at_s", "useful_from_s")


class Saved(NamedTuple):
    """The last checkpoint that a job confirmed in an attempt.

    Attributes:
        at_s: By the clock of the job's node.
    """

    url: str
    at_s: float


class End(NamedTuple):
    """How an attempt ended.

    Attributes:
        state: What Ray says: succeeded, failed, or cancelled (stopped).
        is_node_lost: The node it ran on is gone.
        has_left: It left by itself after it had saved, and said so with its exit code.
    """

    state: JobState
    message: str
    ended_at_s: float
    is_node_lost: bool = False
    has_left: bool = False


def after(job: Job, end: End, saved: Saved | None, params: QueueParams) -> Job:
    """Return the job after the end of its attempt: ended, or waiting for the next one."""
    if end.state is _S.SUCCEEDED:
        return ended(job, _S.SUCCEEDED, "", end.ended_at_s)
    if job.is_cancel_asked:
        return ended(job, _S.CANCELLED, end.message, end.ended_at_s)
    kept = with_progress(job, saved, now_s=end.ended_at_s)
    has_progress = kept.progress_s > job.progress_s
    if job.stop is not None and (job.stop.is_saved or job.stop.is_forced or end.has_left):
        return _after_stop(kept, job.stop, end.ended_at_s)
    failures = (0 if has_progress else job.failures) + 1
    if end.is_node_lost or end.has_left:
        most = max(job.spec.retries, params.least_losses if job.spec.checkpoint else 0)
        because = end.message if end.has_left else "its node was lost"
        if failures <= most or (has_progress and job.spec.checkpoint):
            return _again(kept, end.ended_at_s, because, failures=failures)
    elif end.state is _S.CANCELLED:
        return ended(job, _S.CANCELLED, end.message, end.ended_at_s)
    if failures <= job.spec.retries:
        return _again(kept, end.ended_at_s, end.message, failures=failures)
    return ended(kept, _S.FAILED, end.message, end.ended_at_s)


def ended(job: Job, state: JobState, message: str, at_s: float) -> Job:
    """Return a job to which nothing more will happen."""
    return job.model_copy(
        update={
            "state": state,
            "state_at_s": at_s,
            "ended_at_s": at_s,
            "message": message,
            "slots": (),
            "stop": None,
        }
    )


def with_progress(job: Job, saved: Saved | None, *, now_s: float) -> Job:
    """Return a job with what its last checkpoint holds; without one, from where it began."""
    if saved is None or not saved.url:
        return job
    gain_s = 0.0
    if job.useful_from_s is not None:
        # Clocks differ: a job never did more than the time that passed here.
        gain_s = max(0.0, min(saved.at_s, now_s) - job.useful_from_s)
    return job.model_copy(update={"resume_from": saved.url, "progress_s": job.progress_s + gain_s})


def moved_by(job: Job, by_s: float) -> Job:
    """Return a job whose instants are told by a clock that was set by `by_s`."""
    changes: dict[str, object] = {
        name: value + by_s for name in _INSTANTS if (value := getattr(job, name)) is not None
    }
    if job.stop is not None:
        asked_at_s, until_s = job.stop.asked_at_s + by_s, job.stop.by_s + by_s
        changes["stop"] = job.stop.model_copy(update={"asked_at_s": asked_at_s, "by_s": until_s})
    return job.model_copy(update=changes)


def latest_s(job: Job) -> float:
    """Return the last instant of a job that lies in the past, by a clock that was not set."""
    asked = (job.stop.asked_at_s,) if job.stop else ()
    return max(job.created_at_s, job.state_at_s, *asked)


def with_move(told: Job, before: Job, after: Job) -> Job:
    """Return a job with the moved instants of those that nobody changed meanwhile.

    So a write whose answer was lost can be repeated, and moves nothing twice.
    """
    names = [n for n in (*_INSTANTS, "stop") if getattr(told, n) == getattr(before, n)]
    return told.model_copy(update={name: getattr(after, name) for name in names})


def placed(job: Job, slots: tuple[Slot, ...], at_s: float, message: str) -> Job:
    """Return a waiting job with a place, and with the number of its next attempt."""
    return job.model_copy(
        update={
            "slots": slots,
            "attempt": job.attempt + 1,
            "state_at_s": at_s,
            "message": message,
        }
    )


def unplaced(job: Job, at_s: float, message: str) -> Job:
    """Return a placed job that Ray was never given, without its place."""
    return job.model_copy(
        update={
            "slots": (),
            "attempt": job.attempt - 1,
            "state_at_s": at_s,
            "message": message,
        }
    )


def _after_stop(job: Job, stop: Stop, at_s: float) -> Job:
    is_back = stop.why in ("suspend", "preempt")
    message = {
        "suspend": "suspended; it goes on when there is room",
        "preempt": "gave way to more urgent work; it goes on when there is room",
        "move": "moves",
        "leave": "its node leaves; it goes on elsewhere",
    }[stop.why]
    waiting = _again(
        job,
        at_s,
        message,
        interruptions=job.interruptions + 1,
        suspensions=job.suspensions + is_back,
    )
    return placed(waiting, stop.slots, at_s, message) if stop.slots else waiting


def _again(job: Job, at_s: float, message: str, **counts: int) -> Job:
    changes: Mapping[str, object] = {
        "state": _S.QUEUED,
        "state_at_s": at_s,
        "message": message,
        "slots": (),
        "stop": None,
        "useful_from_s": None,
        "is_deaf": False,
        # The next attempt of a job with a place is counted when it gets one.
        "attempt": job.attempt if job.spec.is_queued else max(1, job.attempt) + 1,
        # Without a checkpoint it begins anew.
        "progress_s": job.progress_s if job.resume_from else 0.0,
        **counts,
    }
    return job.model_copy(update=changes)

"""Letting running jobs save and stop: for a suspension, a move, more urgent work, or a node's end.

Each step is stored before it is taken and may be taken twice, so a controller that was killed
goes on where it was. A job's next attempt begins only when Ray says that this one has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hybrid.core.models import Job, JobState, Stop
from hybrid.core.policy.plan import Move, Suspend
from hybrid.core.ports import Clock, JobRunner
from hybrid.job import messages
from hybrid.jobs.attempts import Saved
from hybrid.jobs.params import QueueParams

_FORCING = frozenset({"preempted", "best_effort"})

# Writes a job with an event of this kind, message and numbers.
Save = Callable[..., Job]


@dataclass
class Stops:
    """Asks jobs to save, and stops those that have.

    Attributes:
        save: Stores a changed job with an event.
        stop: Lets Ray end a job's attempt; called again until it has.
        _asked_at_s: When the present ask of each attempt was made, of those this process made.
    """

    runner: JobRunner
    clock: Clock
    params: QueueParams
    save: Save
    stop: Callable[[Job], None]
    _asked_at_s: dict[str, float] = field(default_factory=dict)

    def begin(self, job: Job, action: Suspend | Move) -> None:
        """Store what a plan wants of a running job."""
        reason = action.reason
        why: Literal["suspend", "move", "preempt"] = "move"
        if isinstance(action, Suspend):
            why = "preempt" if reason.code in _FORCING else "suspend"
        slots = action.slots if isinstance(action, Move) else ()
        by_s = self.clock.now_s() + self._save_limit_s(job)
        stop = self._stop_of(job, why, by_s, reason.message)
        facts = {"reason_code": reason.code, "to": [list(s) for s in slots], **reason.facts}
        if isinstance(action, Move):
            facts["purpose"] = action.purpose
        changed = job.model_copy(update={"stop": stop.model_copy(update={"slots": slots})})
        self.save(changed, f"job_{why}_asked", reason.message, **facts)

    def leave(self, job: Job, deadline_at_s: float) -> Job:
        """Ask a job to save whose node will end."""
        by_s = max(self.clock.now_s(), deadline_at_s - self.params.leave_margin_s)
        message = "its node ends soon"
        changed = job.model_copy(update={"stop": self._stop_of(job, "leave", by_s, message)})
        facts = {"deadline_in_s": round(deadline_at_s - self.clock.now_s(), 3)}
        return self.save(changed, "job_leave_asked", message, **facts)

    def give_back(self, job: Job, message: str) -> None:
        """Take back a job that Ray was given and has not started."""
        now_s = self.clock.now_s()
        stop = Stop(why="leave", asked_at_s=now_s, by_s=now_s, is_saved=True, message=message)
        self.save(job.model_copy(update={"stop": stop}), "job_given_back", message)

    def follow(self, job: Job) -> None:
        """Take the next step of a stop that was stored. Raises `ClusterError`."""
        stop = job.stop
        if stop is None:
            return
        if stop.is_saved:
            self.stop(job)
            return
        if self._asked_at_s.get(job.ray_id) != stop.asked_at_s:
            # A cloud's notice is shorter than our own deadline for a drain.
            soon_s = stop.asked_at_s + self._save_limit_s(job)
            self._ask(job, {"by_s": min(stop.by_s, soon_s), "why": stop.why})
            self._asked_at_s[job.ray_id] = stop.asked_at_s
        saved = self.saved(job)
        if saved is not None and saved.at_s != stop.saved_before_s:
            self._note_saved(job, saved)
        elif self.clock.now_s() >= stop.by_s:
            self._give_up(job, stop)

    def saved(self, job: Job) -> Saved | None:
        """Return the last checkpoint that a job confirmed in its attempt. Raises `ClusterError`."""
        raw = self.runner.note(messages.saved_key(job.job_id, job.attempt))
        found = messages.parse_saved(raw) if raw else None
        return Saved(found.url, found.at_s) if found else None

    def keep_only(self, live: Collection[str]) -> None:
        """Forget attempts that have ended."""
        self._asked_at_s = {k: v for k, v in self._asked_at_s.items() if k in live}

    def _stop_of(
        self, job: Job, why: Literal["suspend", "move", "preempt", "leave"], by_s: float, said: str
    ) -> Stop:
        before = self.saved(job) if job.spec.checkpoint else None
        return Stop(
            why=why,
            asked_at_s=self.clock.now_s(),
            by_s=by_s,
            # One that has nothing to save, or did not begin, is stopped at once.
            is_saved=job.spec.checkpoint is None or job.state is not JobState.RUNNING,
            saved_before_s=before.at_s if before else None,
            message=said,
        )

    def _save_limit_s(self, job: Job) -> float:
        save_s = job.spec.checkpoint.save_s if job.spec.checkpoint else 0.0
        return 2 * save_s + self.params.save_grace_s

    def _ask(self, job: Job, ask: Mapping[str, object]) -> None:
        key = messages.ask_key(job.job_id, job.attempt)
        self.runner.put_note(key, messages.encode(ask))

    def _note_saved(self, job: Job, saved: Saved) -> None:
        assert job.stop is not None  # noqa: S101  # for the type checker
        took_s = self.clock.now_s() - job.stop.asked_at_s
        changed = job.model_copy(update={"stop": job.stop.model_copy(update={"is_saved": True})})
        said = f"saved in {took_s:.0f} s"
        self.stop(self.save(changed, "job_saved", said, url=saved.url, took_s=round(took_s, 3)))

    def _give_up(self, job: Job, stop: Stop) -> None:
        waited_s = round(self.clock.now_s() - stop.asked_at_s, 3)
        if stop.is_forced:
            changed = job.model_copy(update={"stop": stop.model_copy(update={"is_saved": True})})
            said = f"did not save in {waited_s:.0f} s and is stopped all the same"
            self.stop(self.save(changed, "job_not_saved", said, waited_s=waited_s))
            return
        self._ask(job, {"by_s": stop.by_s, "why": "withdrawn"})
        changed = job.model_copy(update={"stop": None, "is_deaf": True})
        said = f"did not save in {waited_s:.0f} s; it goes on where it is and is not asked again"
        self.save(changed, "job_stop_withdrawn", said, waited_s=waited_s)

"""What users ask the controller to do: jobs, drains, pauses, collection, the end."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hybrid.control.loop import Loop
from hybrid.control.mailbox import Mailbox
from hybrid.control.renting import join_token
from hybrid.core.errors import HybridError, JobError
from hybrid.core.models import Event, Instance, InstanceState, Job, JobSpec, JobState, Reason
from hybrid.core.ports import Clock, DrainKind, JobLogs, JobRunner, Ledger, Packages
from hybrid.core.views import Accepted, GcView
from hybrid.job.group import CommandError, program_of
from hybrid.jobs.output import headline
from hybrid.jobs.params import QueueParams
from hybrid.jobs.requests import checkpoint_url

_S = InstanceState
_REFUSALS_EVERY_S = 10.0
_NEXT_ATTEMPT_S = 30.0
_DRY_RUN = "dry-run is on: nothing is changed. `hybrid resume dry-run` first"
LOOK_S = 110.0
"""How long a look into all clouds may take; less than what `hybrid.client` waits for one."""
_DIRECTIONS: Mapping[str, tuple[str, ...]] = {
    "out": ("is_out_paused",),
    "in": ("is_in_paused",),
    "all": ("is_out_paused", "is_in_paused"),
    "dry-run": ("is_dry_run",),
}


class RefusedError(HybridError):
    """The request is understood and will not be done now; the message says why."""


def _require_checkpoint_place(spec: JobSpec, params: QueueParams) -> None:
    """Raise `RefusedError` for a job that promises checkpoints and nobody knows where."""
    if spec.checkpoint is not None and not checkpoint_url("job", spec, params):
        raise RefusedError(
            "the job declares a checkpoint and says not where: give it a url that every node can "
            "reach, or set jobs.checkpoints in the configuration"
        )


def _require_program(spec: JobSpec) -> None:
    """Raise `RefusedError` for a job in a placement group whose command cannot run there."""
    if spec.holds_group:
        try:
            program_of(spec.entrypoint)
        except CommandError as error:
            raise RefusedError(str(error)) from None


@dataclass
class Commands:
    """The writing half of `hybrid.control.service.Service`.

    Whatever touches instances runs in the loop's thread, through the mailbox.

    Attributes:
        ray_token: What nodes get for their join token.
        secret: Key of the join tokens.
        new_job_id: Makes a job id never used before.
    """

    loop: Loop
    ledger: Ledger
    runner: JobRunner
    packages: Packages
    logs: JobLogs
    mailbox: Mailbox
    clock: Clock
    ray_token: str
    secret: bytes
    new_job_id: Callable[[], str]

    def __post_init__(self) -> None:
        """Begin to count refused joins."""
        self._refusal_count = 0
        self._refusals_noted_s = -_REFUSALS_EVERY_S

    def job(self, job_id: str) -> Job:
        """See `Service.job`."""
        job = self.ledger.job(job_id)
        if job is None:
            raise JobError(f"there is no job {job_id!r}; `hybrid jobs` lists them")
        return job

    def submit(self, spec: JobSpec, *, job_id: str = "") -> Job:
        """See `Service.submit`."""
        # In the loop's thread: two calls with one id must not both find that it is new.
        return self.mailbox.ask(lambda: self._submit(spec, job_id))

    def _submit(self, spec: JobSpec, job_id: str) -> Job:
        if self.loop.mode.is_closing:
            raise RefusedError("the cluster is going down; no new job is taken")
        _require_checkpoint_place(spec, self.loop.params.queue)
        _require_program(spec)
        known = self.loop.jobs.book.get(job_id) if job_id else None
        if known is not None:
            return known
        now_s = self.clock.now_s()
        job = Job(
            job_id=job_id or self.new_job_id(),
            spec=spec,
            state=JobState.QUEUED,
            created_at_s=now_s,
            state_at_s=now_s,
        )
        # Not the command: events stay for ever, and people write secrets into commands.
        event = self._event("job_queued", job.job_id, spec.name, name=spec.name)
        self.loop.jobs.book.save(job, event)
        self.mailbox.ring()
        return job

    def cancel(self, job_id: str) -> Job:
        """See `Service.cancel`."""
        return self.mailbox.ask(lambda: self._cancel(job_id))

    def _cancel(self, job_id: str) -> Job:
        job = self.job(job_id)
        if job.state.is_ended or job.is_cancel_asked:
            return job
        asked = job.model_copy(update={"is_cancel_asked": True})
        event = self._event("job_cancel_asked", job_id, "by a user")
        self.loop.jobs.book.save(asked, event)
        self.mailbox.ring()
        return asked

    def job_logs(self, job_id: str, *, is_following: bool = False) -> Iterator[str]:
        """See `Service.job_logs`."""
        job = self.job(job_id)
        kept = self.logs.get(job_id) if job.state.is_ended or job.attempt > 1 else None
        if kept is not None:
            yield kept
        if job.state.is_ended and kept is not None:
            return
        while True:
            while is_following and job.state is JobState.QUEUED:
                yield ""
                self.clock.sleep(0.2)
                job = self.job(job_id)
            attempt = job.ray_id
            if job.state is not JobState.QUEUED:
                if job.attempt > 1:
                    yield headline(job)
                yield from self._rays_logs(job, is_following=is_following)
            until_s = self.clock.monotonic_s() + _NEXT_ATTEMPT_S
            while is_following and not job.state.is_ended and job.ray_id == attempt:
                # Ray's output of an attempt has ended; whether another follows shows in a moment.
                if self.clock.monotonic_s() > until_s:
                    return
                yield ""
                self.clock.sleep(0.2)
                job = self.job(job_id)
            if not is_following or job.state.is_ended:
                return

    def _rays_logs(self, asked: Job, *, is_following: bool) -> Iterator[str]:
        try:
            if is_following:
                yield from self.runner.follow_logs(asked.ray_id)
            else:
                yield from self.runner.logs(asked.ray_id)
        except JobError as error:
            job = self.job(asked.job_id)
            if not job.state.is_ended and job.ray_id == asked.ray_id:
                raise
            if job.state.is_ended:
                words = f"job {job.job_id} has no output ({job.state.value}: {job.message})"
                raise JobError(words) from error

    def upload(self, name: str, content: bytes) -> Accepted:
        """See `Service.upload`."""
        self.packages.put(name, content)
        return Accepted(message=f"stored {name}", facts={"byte_count": len(content)})

    # --- commands -------------------------------------------------------------------------

    def drain(self, target: str, *, deadline_s: float | None, owner: str) -> Accepted:
        """See `Service.drain`."""
        return self.mailbox.ask(lambda: self._drain(target, deadline_s, owner))

    def _drain(self, target: str, deadline_s: float | None, owner: str) -> Accepted:
        instance = self._find(target)
        if self.ledger.mode().is_dry_run:
            raise RefusedError(_DRY_RUN)
        lasts_s = self.loop.params.policy.drain_s if deadline_s is None else deadline_s
        self.loop.actor.start_drain(
            instance,
            kind=DrainKind.BUSY,
            deadline_at_s=self.clock.now_s() + lasts_s,
            reason=Reason(
                code="operator", message=f"drained by {owner}", facts={"deadline_s": lasts_s}
            ),
        )
        self.mailbox.ring()
        return Accepted(
            message=(
                f"{instance.instance_id} takes no new work; it ends when it is idle, "
                f"or in {lasts_s:.0f} s at the latest"
            ),
            facts={"instance_id": instance.instance_id, "deadline_s": lasts_s},
        )

    def _find(self, target: str) -> Instance:
        """Return the one running instance that `target` names."""
        live = self.loop.book.all()
        found = [
            i
            for i in live
            if target and (i.instance_id.startswith(target) or i.node_id.startswith(target))
        ]
        exact = [i for i in found if target in (i.instance_id, i.node_id)]
        found = exact or found
        if len(found) == 1 and found[0].state is _S.RUNNING and not found[0].quarantine:
            return found[0]
        if len(found) == 1:
            why = found[0].quarantine or f"it is {found[0].state.value}"
            raise RefusedError(f"{found[0].instance_id} cannot be drained: {why}")
        if len(found) > 1:
            names = ", ".join(i.instance_id for i in found)
            raise RefusedError(f"{target!r} names several instances: {names}; give more of the id")
        if target in self.loop.base.fleet.hosts() or target == "head":
            raise RefusedError(
                f"{target} is on-prem: it is part of the base and is not drained by this "
                f"version. Take it out of onprem.hosts and run `hybrid up` again"
            )
        names = ", ".join(i.instance_id for i in live) or "none"
        raise JobError(f"no rented instance is called {target!r}; live ones: {names}")

    def pause(self, direction: str, *, owner: str) -> Accepted:
        """See `Service.pause`."""
        return self.mailbox.ask(lambda: self._switch(direction, owner, is_on=True))

    def resume(self, direction: str, *, owner: str) -> Accepted:
        """See `Service.resume`."""
        return self.mailbox.ask(lambda: self._switch(direction, owner, is_on=False))

    def _switch(self, direction: str, owner: str, *, is_on: bool) -> Accepted:
        names = _DIRECTIONS.get(direction)
        if names is None:
            known = ", ".join(_DIRECTIONS)
            raise RefusedError(f"{direction!r} cannot be paused; choose one of {known}")
        if direction == "all" and not is_on:
            names = (*names, "is_dry_run")  # who resumes all expects that nothing holds it back
        changes: dict[str, object] = dict.fromkeys(names, is_on)
        mode = self.ledger.mode().model_copy(update={**changes, "owner": owner})
        self.ledger.set_mode(mode)
        verb = "paused" if is_on else "resumed"
        self.ledger.append(self._event(f"{verb}", direction, f"by {owner}"))
        self.mailbox.ring()
        if direction == "dry-run":
            on = "dry-run is on: decisions are told and not carried out; `hybrid resume` ends it"
            return Accepted(message=on if is_on else "dry-run is off: decisions are carried out")
        what = {"out": "launches", "in": "scale-in", "all": "launches and scale-in"}
        return Accepted(message=f"{what[direction]} {verb}")

    def gc(self, *, is_dry_run: bool) -> GcView:
        """See `Service.gc`."""
        return self.mailbox.ask(lambda: self._gc(is_dry_run=is_dry_run), timeout_s=LOOK_S)

    def _gc(self, *, is_dry_run: bool) -> GcView:
        if not is_dry_run and self.ledger.mode().is_dry_run:
            raise RefusedError(_DRY_RUN)
        loop = self.loop
        loop.clouds.look()
        loop.book.read()
        items = loop.finisher.orphans.find()
        if not is_dry_run:
            items = loop.finisher.orphans.end(items)
        return GcView(
            at_s=self.clock.now_s(),
            is_dry_run=is_dry_run,
            items=tuple(items),
            unreadable=loop.clouds.blind(),
        )

    def close(self, *, drain_s: float | None, owner: str) -> Accepted:
        """See `Service.close`."""
        return self.mailbox.ask(lambda: self._close(drain_s, owner))

    def close_now(self, owner: str) -> None:
        """Begin `down` without waiting for work; for the loop's own thread."""
        if not self.ledger.mode().is_closing:
            self._close(0.0, owner)

    def _close(self, drain_s: float | None, owner: str) -> Accepted:
        mode = self.ledger.mode()
        is_news = not mode.is_closing or drain_s is not None
        if is_news:
            lasts_s = max(0.0, drain_s or 0.0)
            changes = {
                "is_closing": True,
                "is_dry_run": False,
                "close_by_s": self.clock.now_s() + lasts_s,
                "owner": owner,
            }
            self.ledger.set_mode(mode.model_copy(update=changes))
            self.ledger.append(self._event("down_asked", "", f"by {owner}", drain_s=lasts_s))
        self.mailbox.ring()
        count = len(self.loop.book.all())
        already = "" if is_news else " already"
        return Accepted(
            message=f"going down{already}; {count} rented instances to return",
            facts={"instance_count": count},
        )

    def join(self, instance_id: str, join_token_: str) -> str:
        """See `Service.join`."""
        self._prove(instance_id, join_token_, (_S.REQUESTED, _S.BOOTING))
        if not self.ledger.mark_joined(instance_id, now_s=self.clock.now_s()):
            self._note_refusal(instance_id, "token used before")
            raise RefusedError("this join token was used before")
        self.loop.reconciler.note_join(instance_id)
        return self.ray_token

    def report(self, instance_id: str, join_token_: str, *, phase: str, problem: str) -> None:
        """See `Service.report`."""
        live = (_S.REQUESTED, _S.BOOTING, _S.RUNNING, _S.DRAINING)
        instance = self._prove(instance_id, join_token_, live)
        reconciler = self.loop.reconciler
        if instance.state is _S.REQUESTED:
            reconciler.note_join(instance_id)
        report = reconciler.reports.note(instance_id, phase, problem)
        if report is None:
            return
        self.ledger.append(self._event("node_reported", instance_id, str(report), phase=phase))
        if report.is_broken:
            self.mailbox.ring()

    def _prove(
        self, instance_id: str, join_token_: str, states: tuple[InstanceState, ...]
    ) -> Instance:
        """Return the live instance that a join token belongs to. Raises `RefusedError`."""
        instance = self.ledger.instance(instance_id)
        attempt = instance.spec.attempt if instance else 1
        wanted = join_token(self.secret, instance_id, attempt)
        given = join_token_.encode("utf-8", "replace")
        is_right = hmac.compare_digest(wanted.encode(), given)
        is_live = instance is not None and instance.state in states and not instance.quarantine
        if instance is None or not (is_live and is_right):
            self._note_refusal(instance_id, "no live intent or token")
            raise RefusedError("no instance with this id and token is expected")
        return instance

    def _note_refusal(self, instance_id: str, why: str) -> None:
        """Write down a refused join or report; few of many, since anybody can try."""
        self._refusal_count += 1
        now_s = self.clock.monotonic_s()
        if now_s < self._refusals_noted_s + _REFUSALS_EVERY_S:
            return
        self._refusals_noted_s = now_s
        count, self._refusal_count = self._refusal_count, 0
        self.ledger.append(self._event("join_refused", instance_id[:100], why, count=count))

    def _event(self, kind: str, subject: str, message: str, **facts: object) -> Event:
        return Event(
            at_s=self.clock.now_s(),
            epoch=0,
            kind=kind,
            subject=subject,
            message=message,
            facts=facts,
        )

"""What a person should look at now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hybrid.core.models import Instance, InstanceState, OfferFailure
from hybrid.core.policy.plan import Finding, Source
from hybrid.core.policy.words import shape_text
from hybrid.core.ports import HostState, HostStatus
from hybrid.core.views import Alarm

_S = InstanceState

# Waiting does not help with these; no stock does come back by itself.
_FOR_PEOPLE = ("AuthError", "QuotaError", "InvalidRequestError")


def alarms(
    instances: Sequence[Instance],
    sources: Sequence[Source],
    statuses: Mapping[str, HostStatus],
    failures: Iterable[OfferFailure],
    findings: Iterable[Finding],
    *,
    head_problem: str,
    mass_trouble: Alarm | None,
    now_s: float,
) -> tuple[Alarm, ...]:
    """Return what a person should look at now."""
    found = []
    if head_problem:
        what = f"the Ray head does not run: {head_problem}. It is started again by itself"
        found.append(Alarm(code="head_down", what=what, since_at_s=now_s))
    found += [mass_trouble] if mass_trouble is not None else []
    for source in sources:
        if source.is_up and source.problem:
            what = f"{source.name} works in part, with what was known last: {source.problem}"
            found.append(
                Alarm(code="source_stale", subject=source.name, what=what, since_at_s=now_s)
            )
        if not source.is_up:
            what = f"{source.name} cannot be read, so nothing of it is ended: {source.problem}"
            since_s = source.seen_at_s or now_s
            found.append(
                Alarm(code="source_blind", subject=source.name, what=what, since_at_s=since_s)
            )
    for status in statuses.values():
        if status.state is HostState.FAILED:
            what = f"host {status.host} did not join: {status.problem}"
            found.append(
                Alarm(code="host_failed", subject=status.host, what=what, since_at_s=now_s)
            )
    found += [_refused(failure, now_s) for failure in failures if failure.error in _FOR_PEOPLE]
    found += [_never(finding, now_s) for finding in findings if finding.is_for_ever]
    for instance in instances:
        found += _instance_alarms(instance, now_s)
    return tuple(found)


def _never(finding: Finding, now_s: float) -> Alarm:
    subject = finding.gang_id or f"{shape_text(finding.shape)} ({finding.where})"
    what = f"work waits that can never run as things are configured: {finding.reason.message}"
    return Alarm(code="never_runs", subject=subject, what=what, since_at_s=now_s)


def _refused(failure: OfferFailure, now_s: float) -> Alarm:
    what = (
        f"{failure.key} refuses launches until somebody mends it: {failure.message}. It is tried "
        f"again now and then; a success clears this"
    )
    return Alarm(code="offer_refused", subject=failure.key, what=what, since_at_s=now_s)


def _instance_alarms(instance: Instance, now_s: float) -> Iterable[Alarm]:
    def alarm(code: str, what: str) -> Alarm:
        return Alarm(
            code=code, subject=instance.instance_id, what=what, since_at_s=instance.state_at_s
        )

    if instance.quarantine:
        yield alarm("quarantined", f"nothing touches it any more: {instance.quarantine}")
    if instance.state is _S.LOST:
        yield alarm(
            "lost",
            "the cloud does not list it and has not said that it is gone; it still counts "
            "against the caps. Look for it in the cloud's console",
        )
    is_late = instance.deadline_at_s is not None and now_s > instance.deadline_at_s
    if instance.state is _S.TERMINATING and is_late:
        yield alarm(
            "stuck_terminating",
            f"it was told to end {now_s - instance.state_at_s:.0f} s ago and still exists: "
            f"{instance.problem}",
        )

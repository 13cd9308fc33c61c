"""GPUs at home for the replicas of a service: what is free is kept, and batch work makes room.

The replicas rank like a waiting job of the priority that the service borrows with: best-effort
work leaves for them, and jobs with checkpoints of a lower priority are suspended. Ray places the
replicas itself, so nothing is started here: their place is only kept from the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

from hybrid.core.models import Demand, Reason
from hybrid.core.models.work import JobView
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.give_way import clear_for
from hybrid.core.policy.plan import Loan


def lend(draft: Draft, loans: Iterable[Loan]) -> dict[str, int]:
    """Keep free GPUs at home for services, and suspend batch work for what is missing.

    Only jobs on one node are suspended: a gang would lose all of its nodes for one.

    Args:
        draft: The plan so far.
        loans: What services borrow.

    Returns:
        By service, for how many replicas there is room, or will be when the stopped jobs saved.
    """
    found: dict[str, int] = {}
    for loan in loans:
        found[loan.service] = 0
        replica = _as_job(loan, draft)
        lower = [job for job in draft.at_home.values() if job.is_single]
        for _ in range(loan.count):
            slots = draft.board.home.fit(replica)
            if slots is None and _make_room(replica, loan, draft, lower):
                slots = draft.board.home.fit(replica)
            if slots is None:
                break  # Equal replicas fail alike.
            draft.board.home.take(replica, slots)
            found[loan.service] += 1
    return found


def _as_job(loan: Loan, draft: Draft) -> JobView:
    return JobView(
        job_id=f"service {loan.service}",
        units=(Demand(shape=loan.shape, count=1),),
        submitted_at_s=draft.terms.now_s,
        max_wait_s=0.0,
        priority=loan.priority,
    )


def _make_room(replica: JobView, loan: Loan, draft: Draft, lower: list[JobView]) -> bool:
    clearings = clear_for(replica, draft, lower)
    victims = [victim for clearing in clearings for victim in clearing.victims]
    if not victims or len(victims) > draft.stops_left:
        return False
    for victim in victims:
        draft.suspend(victim, _reason(victim, loan))
    return True


def _reason(victim: JobView, loan: Loan) -> Reason:
    facts: dict[str, float | int | str] = {
        "for_service": loan.service,
        "gpus": victim.gpus,
        "priority": victim.priority,
        "for_priority": loan.priority,
    }
    # Work without a checkpoint that may leave at once is not waited for.
    code = "best_effort" if victim.is_filler else "lent"
    return Reason(code=code, message=lent_words(loan.service), facts=facts)


def lent_words(service: str) -> str:
    """Return why a job is suspended for a service. Its row keeps these words until it stopped."""
    return f"its GPUs are lent to the service {service}"

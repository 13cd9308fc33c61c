"""The policy for jobs, step by step: slack is spent before money, and money brings work home."""

from __future__ import annotations

from hybrid.core.models import InstanceState, NodeStatus
from hybrid.core.policy.jobs.board import Board
from hybrid.core.policy.jobs.dispatch import dispatch
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.exchange import exchange
from hybrid.core.policy.jobs.home import bring_home
from hybrid.core.policy.jobs.pack import pack_for
from hybrid.core.policy.jobs.release import release
from hybrid.core.policy.jobs.rent import rent, unneeded_boots, urgent
from hybrid.core.policy.jobs.suspend import Reservoir
from hybrid.core.policy.jobs.terms import Terms
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Action, Snapshot

_USABLE = (NodeStatus.RUNNING, NodeStatus.IDLE)


def plan_jobs(snapshot: Snapshot, params: PolicyParams) -> list[Action]:
    """Return what happens to jobs and to the nodes rented for them.

    In this order, so that money is the last means and ends first:

    1. waiting jobs take what is free;
    2. those that may make room get it at home: by moving small jobs together, then by
       suspending jobs that are rich in slack;
    3. jobs that cannot move change places with jobs that can, where a rented node is free;
    4. nodes are rented for the rest that may not wait, and boots that nobody needs are ended;
    5. rented work comes home;
    6. idle nodes are returned;
    7. what became free is taken.
    """
    draft = Draft.of(snapshot.jobs, board_of(snapshot), terms_of(snapshot, params))
    dispatch(draft)
    make_room(draft)
    actions: list[Action] = []
    is_out = not snapshot.mode.is_out_paused
    if is_out:
        exchange(draft)
    waiting = urgent(draft)
    launches = rent(waiting, snapshot, draft, params) if is_out and waiting else []
    if not waiting and not snapshot.demands and not snapshot.gangs:
        actions += unneeded_boots(snapshot)
    bring_home(draft)
    drains = [] if snapshot.mode.is_in_paused else release(snapshot, draft, waiting, params.drain_s)
    if draft.stopped:
        dispatch(draft)
    return [*draft.actions, *launches, *actions, *drains]


def make_room(draft: Draft) -> None:
    """Get places at home for waiting jobs: by packing, then by spending others' slack.

    Never more GPUs are freed than all of these jobs together need.
    """
    due = [job for job in draft.queue.values() if draft.terms.may_make_room(job)]
    need = sum(job.gpus for job in due)
    reservoir = Reservoir(draft)
    for job in sorted(due, key=lambda j: (*draft.key(j)[:2], -j.gpus, j.job_id)):
        slots = draft.board.home.fit(job)
        code = "free_at_home"
        if slots is None and pack_for(draft, job):
            slots, code = draft.board.home.fit(job), "packed"
        if slots is None:
            slots, code = reservoir.make_room(job, need - job.gpus), "made_room"
        need -= job.gpus
        if slots is not None:
            draft.start(job, slots, draft.reason(code, job))


def board_of(snapshot: Snapshot) -> Board:
    """Return the free capacity that jobs may use."""
    board = Board()
    running = {i.instance_id for i in snapshot.instances if i.state is InstanceState.RUNNING}
    for node in snapshot.nodes:
        if node.status not in _USABLE:
            continue
        if not node.instance_id:
            board.home.add(node.node_id, node.total, node.available, node.labels)
        elif node.instance_id in running:
            board.cloud.add(node.node_id, node.total, node.available, node.labels)
    return board


def terms_of(snapshot: Snapshot, params: PolicyParams) -> Terms:
    """Return the clock of a plan, with the time a node needs to come as it was learned."""
    boots = [snapshot.boot_s_by_offer.get(o.offer_id, o.boot_s) for o in snapshot.offers]
    # Which offer it will be is not known yet; the slowest keeps every promise.
    return Terms(snapshot.now_s, params.jobs, max(boots, default=0.0) + params.jobs.guard_s)

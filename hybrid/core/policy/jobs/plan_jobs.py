"""The policy for jobs, step by step: slack is spent before money, and money brings work home."""

from __future__ import annotations

from hybrid.core.models import InstanceState, NodeStatus
from hybrid.core.policy.jobs.board import Board, Nodes
from hybrid.core.policy.jobs.dispatch import dispatch
from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.exchange import exchange
from hybrid.core.policy.jobs.give_way import give_way
from hybrid.core.policy.jobs.home import bring_home
from hybrid.core.policy.jobs.lend import lend
from hybrid.core.policy.jobs.pack import pack_for
from hybrid.core.policy.jobs.release import release
from hybrid.core.policy.jobs.rent import JOB_WAITS, rent, unneeded_boots, urgent
from hybrid.core.policy.jobs.suspend import Reservoir
from hybrid.core.policy.jobs.terms import terms_of
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Action, Drain, Snapshot, Terminate

_USABLE = (NodeStatus.RUNNING, NodeStatus.IDLE)


def is_only_jobs(snapshot: Snapshot) -> bool:
    """Return whether everything that waits and everything rented is for jobs of our own queue."""
    if snapshot.demands or snapshot.gangs:
        return False
    if not snapshot.jobs and not snapshot.instances:
        return False
    return all(instance.reason.code == JOB_WAITS for instance in snapshot.instances)


def plan_jobs(
    snapshot: Snapshot, params: PolicyParams, *, may_spend: bool = True
) -> tuple[Action, ...]:
    """Return what happens to jobs and to the nodes rented for them.

    In this order, so that money is the last means and ends first; before all of it, services get
    the GPUs at home that they borrow:

    1. waiting jobs take what is free;
    2. those that may make room get it at home: work of lower rank gives way, small jobs move
       together, then jobs that are rich in slack are suspended;
    3. jobs that cannot move change places with jobs that can, where a rented node is free;
    4. nodes are rented for the rest that may not wait, and boots that nobody needs are ended;
    5. rented work comes home;
    6. idle nodes are returned;
    7. what became free is taken.

    Args:
        snapshot: What was seen. Nothing is planned while the cluster goes down.
        params: Thresholds.
        may_spend: Whether no money cap is reached: otherwise nothing goes to the cloud.
    """
    if snapshot.mode.is_closing:
        return ()
    has_mine = any(i.reason.code == JOB_WAITS for i in snapshot.instances)
    if not snapshot.jobs and not has_mine:
        return ()
    draft = Draft.of(snapshot.jobs, board_of(snapshot), terms_of(snapshot, params.jobs))
    may_go_out = may_spend and not snapshot.mode.is_out_paused
    lend(draft, snapshot.loans)
    dispatch(draft, may_go_out=may_spend)
    give_way(draft)
    make_room(draft)
    if may_go_out:
        exchange(draft)
    waiting = urgent(draft, snapshot.home_release_gpus_per_s, snapshot.hosts)
    launches = rent(waiting, snapshot, draft, params) if may_go_out else []
    bring_home(draft)
    if draft.stopped:
        dispatch(draft, may_go_out=may_spend)
    ends: list[Terminate | Drain] = []
    if not snapshot.mode.is_in_paused and may_spend:
        ends += [] if waiting else unneeded_boots(snapshot)
        ends += release(snapshot, draft, waiting, params)
    return (*draft.actions, *launches, *ends)


def make_room(draft: Draft) -> None:
    """Get places at home for waiting jobs: by packing, then by spending others' slack.

    Never more GPUs are freed than all of these jobs together need.
    """
    due = [job for job in draft.queue.values() if draft.terms.may_make_room(job)]
    need = sum(job.gpus for job in due)
    reservoir = Reservoir(draft)
    for job in sorted(due, key=lambda j: (*draft.key(j)[:-1], -j.gpus, j.job_id)):
        kept = draft.kept_from(job)
        slots = draft.board.home.fit(job, without=kept)
        code = "free_at_home"
        if slots is None and kept:
            need -= job.gpus
            continue
        if slots is None and pack_for(draft, job):
            slots, code = draft.board.home.fit(job), "packed"
        if slots is None:
            slots, code = reservoir.make_room(job, need - job.gpus), "made_room"
        need -= job.gpus
        if slots is not None:
            draft.start(job, slots, draft.reason(code, job))


def board_of(snapshot: Snapshot) -> Board:
    """Return the free capacity that jobs may use."""
    running = {i.instance_id for i in snapshot.instances if i.state is InstanceState.RUNNING}
    usable = [node for node in snapshot.nodes if node.status in _USABLE]
    return Board(
        home=Nodes.of(node for node in usable if not node.instance_id),
        cloud=Nodes.of(node for node in usable if node.instance_id in running),
    )

"""Carrying out a plan: launches and drains. Each mutation checks the switches and the epoch."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.control.book import Book
from hybrid.control.launching import Launcher
from hybrid.control.params import ControlParams
from hybrid.core.errors import ClusterError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Instance, InstanceState, Reason
from hybrid.core.policy.plan import Drain, Launch, Plan, Terminate
from hybrid.core.ports import Clock, Cluster, DrainKind, Mode

_S = InstanceState

# What drains in spite of a pause of scale-in: a hard cap, and a person's own word.
_PAUSE_PROOF = ("budget_", "operator", "down")


def may_drain(mode: Mode, reason: Reason | None) -> bool:
    """Return whether a drain for this reason may go on under the operator's switches."""
    if mode.is_dry_run:
        return False
    is_pause_proof = reason is not None and reason.code.startswith(_PAUSE_PROOF)
    return is_pause_proof or not mode.is_in_paused


@dataclass
class Actor:
    """Does what a plan says."""

    book: Book
    cluster: Cluster
    clock: Clock
    params: ControlParams
    launcher: Launcher

    def carry_out(self, plan: Plan) -> None:
        """Do the plan's actions, the urgent ones first: what frees money before what costs."""
        for action in plan.actions:
            if isinstance(action, Drain):
                self._drain(action)
            elif isinstance(action, Terminate):
                self._terminate(action)
        self.launcher.launch([a for a in plan.actions if isinstance(a, Launch)])

    # --- drains ---------------------------------------------------------------------------

    def _drain(self, action: Drain) -> None:
        instance = self.book.get(action.instance_id)
        if instance is None or not may_drain(self.book.ledger.mode(), action.reason):
            return
        self.start_drain(
            instance,
            kind=DrainKind.BUSY if action.is_busy else DrainKind.IDLE,
            deadline_at_s=action.deadline_at_s,
            reason=action.reason,
        )

    def start_drain(
        self, instance: Instance, *, kind: DrainKind, deadline_at_s: float, reason: Reason
    ) -> None:
        """Store a drain with its deadline, then ask Ray; one that goes on can be shortened."""
        if instance.state is _S.DRAINING and kind is DrainKind.BUSY:
            self._shorten(instance, deadline_at_s, reason)
        if instance.state is not _S.RUNNING:
            return
        if kind is DrainKind.IDLE:
            # Ray ends an idle node at once; longer means that something is wrong.
            deadline_at_s = self.clock.now_s() + self.params.deadlines.idle_drain_s
        draining = self.book.apply(
            instance,
            Fact.DRAIN_STARTED,
            problem=reason.message,
            drain_kind=kind.value,
            drain_reason=reason,
            deadline_at_s=deadline_at_s,
        )
        if not draining.quarantine:
            self.ask_ray(draining)

    def _shorten(self, instance: Instance, deadline_at_s: float, reason: Reason) -> None:
        if instance.deadline_at_s is not None and instance.deadline_at_s <= deadline_at_s:
            return
        shorter = self.book.note(
            instance,
            problem=reason.message,
            drain_kind=DrainKind.BUSY.value,
            drain_reason=reason,
            deadline_at_s=deadline_at_s,
        )
        self.book.record("drain_shortened", instance.instance_id, reason.message)
        self.ask_ray(shorter)

    def ask_ray(self, instance: Instance) -> None:
        """Ask Ray to drain; a refusal puts the instance back, silence leaves it as it is."""
        kind = DrainKind(instance.drain_kind or "busy")
        words = instance.drain_reason.message if instance.drain_reason else "drain"
        self.book.ledger.check_epoch()
        if not may_drain(self.book.ledger.mode(), instance.drain_reason):
            return
        try:
            reply = self.cluster.drain(
                instance.node_id,
                kind=kind,
                deadline_at_s=instance.deadline_at_s or self.clock.now_s(),
                message=words,
            )
        except ClusterError as error:
            self.book.note(instance, problem=f"drain not confirmed: {error}")
            return
        if not reply.is_accepted:
            self.book.apply(instance, Fact.DRAIN_REFUSED, problem=f"Ray: {reply.message}")

    def _terminate(self, action: Terminate) -> None:
        instance = self.book.get(action.instance_id)
        if instance is not None and not self.book.ledger.mode().is_dry_run:
            self.book.apply(instance, Fact.TERMINATE_ASKED, problem=action.reason.message)

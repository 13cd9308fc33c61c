"""Carrying out a plan: launches and drains. Each mutation checks the switches and the epoch."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.params import ClusterFacts, ControlParams
from hybrid.core.backoff import backoff_s
from hybrid.core.errors import (
    AuthError,
    CapacityError,
    CapExceededError,
    ClusterError,
    InvalidRequestError,
    ProviderError,
    QuotaError,
    Scope,
    ThrottledError,
)
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Instance, InstanceState, LaunchSpec, Offer, OfferFailure, Reason
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.plan import Drain, Launch, Plan, Terminate
from hybrid.core.ports import Clock, Cluster, DrainKind, Mode
from hybrid.core.scopes import scope_key

_S = InstanceState
_REFUSALS = (CapacityError, QuotaError, InvalidRequestError, AuthError)

# What drains in spite of a pause of scale-in: a hard cap, and a person's own word.
_PAUSE_PROOF = ("budget_", "operator", "down")


def launch_token(cluster_id: str, instance_id: str, attempt: int) -> str:
    """Return the idempotency token of a launch: 40 hex digits, the same for ever."""
    text = f"{cluster_id}/{instance_id}/{attempt}"
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def join_token(secret: bytes, instance_id: str, attempt: int) -> str:
    """Return the one-time secret with which an instance's node asks for Ray's token.

    Derived, so that a repeated launch carries the same user data and nothing secret is stored.
    """
    return hmac.new(secret, f"{instance_id}/{attempt}".encode(), hashlib.sha256).hexdigest()


def may_drain(mode: Mode, reason: Reason | None) -> bool:
    """Return whether a drain for this reason may go on under the operator's switches."""
    if mode.is_dry_run:
        return False
    is_pause_proof = reason is not None and reason.code.startswith(_PAUSE_PROOF)
    return is_pause_proof or not mode.is_in_paused


@dataclass
class Actor:
    """Does what a plan says.

    Attributes:
        new_id: Makes an instance id never used before.
        refused_count: Launches that were refused so far; when it grows, a plan came to less
            than it meant to.
        secret: Key of the join tokens.
        _untouched: Intents of this process of which no call can have rented anything.
    """

    book: Book
    clouds: Clouds
    cluster: Cluster
    clock: Clock
    params: ControlParams
    facts: ClusterFacts
    new_id: Callable[[], str]
    secret: bytes
    rng: random.Random
    refused_count: int = 0
    _retry_at_s: dict[str, float] = field(default_factory=dict)
    _untouched: set[str] = field(default_factory=set)

    def carry_out(self, plan: Plan) -> None:
        """Do the plan's actions, the urgent ones first: what frees money before what costs."""
        for action in sorted(plan.actions, key=lambda a: a.kind == "launch"):
            if isinstance(action, Launch):
                self._launch(action.offer, action.reason)
            elif isinstance(action, Drain):
                self._drain(action)
            elif isinstance(action, Terminate):
                self._terminate(action)

    # --- launches -------------------------------------------------------------------------

    def retry_launches(self) -> None:
        """Repeat create calls whose outcome is unknown, with the same token and parameters."""
        now_s = self.clock.monotonic_s()
        asked = {i.instance_id for i in self.book.live(_S.REQUESTED)}
        self._retry_at_s = {k: v for k, v in self._retry_at_s.items() if k in asked}
        for instance in self.book.live(_S.REQUESTED):
            if now_s >= self._retry_at_s.get(instance.instance_id, 0.0):
                self._call(instance)

    def _may_launch(self, provider: str) -> bool:
        """Return whether launches are allowed at this very moment."""
        # What we cannot list we could not reap either.
        if not self.clouds.is_listed(provider):
            return False
        mode = self.book.ledger.mode()
        return not (mode.is_out_paused or mode.is_dry_run or mode.is_closing)

    def _launch(self, offer: Offer, reason: Reason) -> None:
        # An offer that failed a moment ago, in this very plan, is not asked ten times more.
        if self.book.is_resting(offer) or not self._may_launch(offer.provider):
            return
        instance = self._intent(offer, reason)
        try:
            # Before the call: a crash here leaves a trace, not a leak.
            self.book.add(instance, caps=self.params.caps, exit_s=self.params.policy.exit_s)
        except CapExceededError as error:
            self.book.record(
                "launch_capped", offer.offer_id, str(error), cap=error.cap, reason_code=reason.code
            )
            return
        self._untouched.add(instance.instance_id)
        self._call(instance)

    def _intent(self, offer: Offer, reason: Reason) -> Instance:
        now_s = self.clock.now_s()
        instance_id = self.new_id()
        spec = LaunchSpec(
            cluster_id=self.facts.cluster_id,
            instance_id=instance_id,
            epoch=self.book.ledger.epoch,
            head_address=self.facts.head_address,
            controller_url=self.facts.controller_url,
            labels=rented_labels(offer),
            expires_at_s=now_s + self.params.lease_s,
            ray_version=self.facts.ray_version,
            python_version=self.facts.python_version,
            tags={
                "hybrid-cluster": self.facts.cluster_id,
                "hybrid-cluster-name": self.facts.name,
                "hybrid-instance": instance_id,
                "hybrid-epoch": str(self.book.ledger.epoch),
            },
        )
        return Instance(
            instance_id=instance_id,
            offer=offer,
            spec=spec,
            token=launch_token(self.facts.cluster_id, instance_id, spec.attempt),
            state=_S.REQUESTED,
            state_at_s=now_s,
            created_at_s=now_s,
            deadline_at_s=now_s + self.params.deadlines.launch_s,
            lease_until_s=spec.expires_at_s,
            reason=reason,
        )

    def _call(self, instance: Instance) -> None:
        provider = self.clouds.by_name.get(instance.offer.provider)
        self._retry_at_s[instance.instance_id] = self.clock.monotonic_s() + self.params.retry_s
        secret = join_token(self.secret, instance.instance_id, instance.spec.attempt)
        self.book.ledger.check_epoch()
        if provider is None or not self._may_launch(instance.offer.provider):
            return
        try:
            provider_id = provider.launch(
                instance.offer, instance.spec, token=instance.token, join_token=secret
            )
        except _REFUSALS as error:
            self._refused(instance, error)
        except ThrottledError as error:
            self.book.note(instance, problem=str(error))
        except ProviderError as error:
            # Timed out or unknown: it may exist. The row keeps its reservation.
            self._untouched.discard(instance.instance_id)
            self.book.note(instance, problem=str(error))
        else:
            self._untouched.discard(instance.instance_id)
            self.book.apply(instance, Fact.LAUNCH_ACCEPTED, provider_id=provider_id)
        self.clouds.forget_offers(instance.offer.provider)

    def _refused(self, instance: Instance, error: ProviderError) -> None:
        """Close an intent that was refused, or look for what an earlier call may have made.

        "Nothing was rented" is true of one call. When an earlier one, of this process or of
        one that crashed, got no answer, only the cloud's lists can tell.
        """
        if instance.instance_id in self._untouched:
            self._untouched.discard(instance.instance_id)
            self.book.apply(instance, Fact.LAUNCH_REFUSED, problem=str(error))
        else:
            problem = f"refused, but an earlier call may have rented it: {error}"
            self.book.apply(instance, Fact.LAUNCH_OVERDUE, problem=problem)
        self.refused_count += 1
        self.offer_failed(instance.offer, error)

    def offer_failed(self, offer: Offer, error: ProviderError | str) -> None:
        """Leave an offer, or all that the failure reaches, alone for a while, longer each time.

        What fails while the offer rests already was started before: it is the same trouble.
        """
        if self.book.is_resting(offer):
            return
        scope = error.scope if isinstance(error, ProviderError) else Scope.POOL
        key = scope_key(offer, scope)
        before = self.book.failure(key)
        count = before.failure_count + 1 if before else 1
        delay_s = backoff_s(
            count,
            base_s=self.params.backoff_base_s,
            cap_s=self.params.backoff_cap_s,
            jitter=self.rng.random(),
        )
        failure = OfferFailure(
            key=key,
            failure_count=count,
            until_s=self.clock.now_s() + delay_s,
            error=type(error).__name__ if isinstance(error, ProviderError) else "JoinError",
            message=str(error),
        )
        self.book.save_failure(failure)
        self.book.record(
            "offer_failed",
            key,
            failure.message,
            offer_id=offer.offer_id,
            failure_count=count,
            rest_s=round(delay_s, 1),
        )

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
        """Store a drain with its deadline, then ask Ray."""
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

"""`hybrid down`: bring everything home, prove it, then let the base go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.control.act import Actor
from hybrid.control.base import Base
from hybrid.control.book import Book
from hybrid.control.clouds import Clouds
from hybrid.control.finish import Finisher
from hybrid.core.errors import ProviderError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Instance, InstanceState, Node, NodeStatus, Reason
from hybrid.core.ports import Clock, DrainKind, Mode, TidyProvider
from hybrid.jobs.dispatch import Dispatcher

_S = InstanceState
_WITH_NODE = (_S.RUNNING, _S.DRAINING)


@dataclass
class Closer:
    """Takes the cluster down step by step, one step a tick."""

    book: Book
    clouds: Clouds
    actor: Actor
    finisher: Finisher
    base: Base
    jobs: Dispatcher
    clock: Clock

    def step(self, mode: Mode, nodes: Mapping[str, Node]) -> str:
        """Do what can be done now; return what is still waited for, or `""` when all is gone."""
        now_s = self.clock.now_s()
        is_late = mode.close_by_s is None or now_s >= mode.close_by_s
        owner = mode.owner or "hybrid down"
        if is_late:
            self.jobs.cancel_all(owner)
        else:
            self.jobs.cancel_waiting(owner)
        for instance in self.book.all():
            if instance.quarantine:
                # An operator asked for the end of everything: this one gets a second chance.
                self.book.note(instance, quarantine="")
        for instance in self.book.live():
            self._push(instance, nodes.get(instance.instance_id), mode, is_late=is_late)
        left = self.book.all()
        blind = ", ".join(s.name for s in (*self.clouds.blind(), *self.clouds.stranded(left)))
        if left:
            silent = f"; {blind} cannot be read, so nothing of it is proved gone" if blind else ""
            return f"{_words(left)}{silent}"
        if blind:
            return f"waiting for {blind}: what it still has is unknown"
        orphans = self.finisher.orphans.end(self.finisher.orphans.find())
        if orphans:
            return f"ending {len(orphans)} unknown instances that carry our tags"
        if not is_late and self.book.ledger.jobs(is_live_only=True):
            return "waiting for running jobs"
        return ""

    def finish(self) -> list[str]:
        """Let the base go; return what could not be ended."""
        self._tidy()
        left = self.base.stop(check=self.book.ledger.check_epoch)
        self.jobs.close_all("the cluster went down")
        return left

    def _tidy(self) -> None:
        """Remove what the clouds hold beside instances; it is free, so a failure stops nothing."""
        for provider in self.clouds.providers:
            if isinstance(provider, TidyProvider):
                try:
                    provider.tidy()
                except ProviderError as error:
                    self.book.record("tidy_failed", provider.name, str(error))

    def _push(self, instance: Instance, node: Node | None, mode: Mode, *, is_late: bool) -> None:
        if instance.state is _S.REQUESTED:
            self._settle_request(instance)
        elif instance.state is _S.BOOTING or (instance.state in _WITH_NODE and is_late):
            self.book.apply(instance, Fact.TERMINATE_ASKED, problem="hybrid down")
        elif instance.state is _S.RUNNING:
            is_idle = node is not None and node.status is NodeStatus.IDLE
            self.actor.start_drain(
                instance,
                kind=DrainKind.IDLE if is_idle else DrainKind.BUSY,
                deadline_at_s=mode.close_by_s or self.clock.now_s(),
                reason=Reason(code="down", message="the cluster is going down"),
            )

    def _settle_request(self, instance: Instance) -> None:
        """Give up on a create call whose outcome is unknown; the list will show what it made."""
        provider = self.clouds.by_name.get(instance.offer.provider)
        lag_s = provider.list_lag_s if provider else 0.0
        if instance.missing_count and self.clock.now_s() - instance.created_at_s >= lag_s:
            self.book.apply(instance, Fact.LAUNCH_OVERDUE, problem="hybrid down")


def _words(instances: tuple[Instance, ...]) -> str:
    counts: dict[str, int] = {}
    for instance in instances:
        word = "quarantined" if instance.quarantine else instance.state.value
        counts[word] = counts.get(word, 0) + 1
    parts = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return f"returning rented instances: {parts}"

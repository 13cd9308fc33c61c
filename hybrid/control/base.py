"""Keeping the base up: the Ray head and the on-prem hosts. Nothing here can end an instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from hybrid.control import log
from hybrid.control.together import Together, in_turn
from hybrid.core.backoff import backoff_s
from hybrid.core.errors import FleetError
from hybrid.core.models import Labels, Node, NodeStatus, Shape
from hybrid.core.policy.plan import Host
from hybrid.core.ports import Clock, Fleet, HostState, HostStatus

_log = log.get(__name__)


class Head(Protocol):
    """The Ray head of the cluster."""

    def start(self) -> None:
        """Start it unless it runs; returns before it answers. Raises `FleetError`."""
        ...

    def stop(self) -> None:
        """End it and everything it started; idempotent. Raises `FleetError`."""
        ...

    def is_alive(self) -> bool:
        """Return whether its processes run."""
        ...

    def problem(self) -> str:
        """Return why it does not run, or `""`."""
        ...


@dataclass
class Base:
    """The head and the hosts that are meant to be up.

    Attributes:
        shapes: Ray resources each host will bring, from the configuration.
        labels: Labels each host will carry.
        together: Ends the hosts at the same time.
    """

    head: Head
    fleet: Fleet
    clock: Clock
    shapes: dict[str, Shape]
    labels: dict[str, Labels]
    together: Together = in_turn
    statuses: dict[str, HostStatus] = field(default_factory=dict)
    problem: str = ""
    _failures: dict[str, int] = field(default_factory=dict)
    _retry_at_s: dict[str, float] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)

    def ensure(self, *, check: Callable[[], None]) -> list[tuple[str, str]]:
        """Start what is down; return (host or `head`, problem) for what was found down.

        A host that fails is tried again, less and less often; it never stops the others.

        Args:
            check: Called right before each start; raises `FencedError` when another controller
                keeps the base up now.
        """
        found: list[tuple[str, str]] = []
        self.problem = "" if self.head.is_alive() else self.head.problem() or "it is not running"
        if not self.problem and self._is_due("head"):
            # It outlived the pause after its last start, so the next fault is a new one.
            self._failures.pop("head", None)
        if self.problem and self._is_due("head"):
            found.append(("head", self.problem))
            check()
            self._try("head", self.head.start)
        for name in self.fleet.hosts():
            status = self._probe(name)
            self.statuses[name] = status
            if status.state in (HostState.JOINING, HostState.JOINED):
                if status.state is HostState.JOINED:
                    self._failures.pop(name, None)
                continue
            if self._is_due(name):
                found.append((name, status.problem or "it is not running"))
                check()
                self._try(name, lambda host=name: self.fleet.join(host))
        return found

    def hosts(self, nodes: tuple[Node, ...]) -> tuple[Host, ...]:
        """Return the hosts for a snapshot; those whose node Ray does not have yet are coming."""
        there = {n.host for n in nodes if n.host and n.status is not NodeStatus.DEAD}
        return tuple(
            Host(
                name=name,
                shape=self._shape(name),
                labels=self.labels[name],
                is_coming=name not in there
                and self.statuses.get(name, _UNKNOWN).state is HostState.JOINING,
            )
            for name in self.fleet.hosts()
        )

    def is_settled(self, nodes: tuple[Node, ...]) -> bool:
        """Return whether every host is a node or has failed, and the head is a node."""
        there = {n.host for n in nodes if n.host and n.status is not NodeStatus.DEAD}
        failed = {n for n, s in self.statuses.items() if s.state is HostState.FAILED}
        has_head = any(n.is_head and n.status is not NodeStatus.DEAD for n in nodes)
        return has_head and all(h in there or h in failed for h in self.fleet.hosts())

    def stop(self, *, check: Callable[[], None]) -> list[str]:
        """End hosts, then the head; return what could not be ended, in words."""
        names = self.fleet.hosts()
        answers = dict(self.together([partial(self._leave, name, check) for name in names]))
        left = [answers[place] for place in range(len(names)) if answers[place]]
        check()
        try:
            self.head.stop()
        except FleetError as error:
            left.append(f"head: {error}")
        return left

    def _leave(self, name: str, check: Callable[[], None]) -> str:
        check()
        try:
            self.fleet.leave(name)
        except FleetError as error:
            return f"host {name}: {error}"
        return ""

    def _shape(self, name: str) -> Shape:
        """Return what a host brings: what its own machine says, once it has said so."""
        status = self.statuses.get(name)
        return status.shape if status is not None and status.shape else self.shapes[name]

    def _probe(self, name: str) -> HostStatus:
        try:
            status = self.fleet.probe(name)
        except FleetError as error:
            return self._failed(name, str(error))
        if status.state is HostState.ABSENT and name in self._refused:
            # Nothing of it came so far that a probe could find: it failed all the same.
            return self._failed(name, self._refused[name])
        return status

    def _failed(self, name: str, problem: str) -> HostStatus:
        return HostStatus(
            host=name, state=HostState.FAILED, shape=self.shapes[name], problem=problem
        )

    def _is_due(self, name: str) -> bool:
        return self.clock.monotonic_s() >= self._retry_at_s.get(name, 0.0)

    def _try(self, name: str, start: Starter) -> None:
        self._failures[name] = self._failures.get(name, 0) + 1
        delay_s = backoff_s(self._failures[name], base_s=10.0, cap_s=300.0)
        self._retry_at_s[name] = self.clock.monotonic_s() + delay_s
        self._refused.pop(name, None)
        try:
            start()
        except FleetError as error:
            self._refused[name] = str(error)
            _log.warning("base_start_failed", subject=name, reason=str(error))


class Starter(Protocol):
    """Something that starts a part of the base."""

    def __call__(self) -> None:
        """Start it. Raises `FleetError`."""
        ...


_UNKNOWN = HostStatus(host="", state=HostState.ABSENT, shape={})

"""The on-prem hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from hybrid.core.models import Model


class HostState(StrEnum):
    """Where an on-prem host is. There is no verb to terminate one."""

    ABSENT = "absent"
    JOINING = "joining"
    JOINED = "joined"
    FAILED = "failed"


class HostStatus(Model):
    """What the fleet knows of a host.

    Attributes:
        shape: Ray resources it brings when it has joined.
        problem: Why it failed, and what to do.
    """

    host: str
    state: HostState
    shape: Mapping[str, float]
    problem: str = ""
    pids: tuple[int, ...] = ()


class Fleet(Protocol):
    """The on-prem hosts. The only verbs are join, leave and probe."""

    def hosts(self) -> Sequence[str]:
        """Return the names of all configured hosts, in order."""
        ...

    def join(self, host: str) -> None:
        """Start a Ray node on the host; returns before it has joined. Idempotent.

        Raises:
            FleetError: It could not even be tried.
        """
        ...

    def leave(self, host: str) -> None:
        """End the Ray node on the host, if there is one. Idempotent.

        Raises:
            FleetError: It may still run.
        """
        ...

    def probe(self, host: str) -> HostStatus:
        """Return the host's state as seen from its own machine.

        Raises:
            FleetError: The host cannot be reached; its state is unknown.
        """
        ...

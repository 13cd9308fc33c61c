"""What the program needs from the outside, one protocol per kind of thing.

Implementations are synchronous: the cloud SDKs are, and one tick runs in one thread.
"""

from __future__ import annotations

from hybrid.core.ports.clock import Clock
from hybrid.core.ports.clouds import (
    GangProvider,
    MakeProvider,
    Provider,
    ProviderContext,
    TidyProvider,
)
from hybrid.core.ports.cluster import Cluster, DrainKind, DrainReply
from hybrid.core.ports.fleet import Fleet, HostState, HostStatus
from hybrid.core.ports.jobs import JobLogs, JobRunner, JobStatus, Packages
from hybrid.core.ports.ledger import Ledger, Mode

__all__ = [
    "Clock",
    "Cluster",
    "DrainKind",
    "DrainReply",
    "Fleet",
    "GangProvider",
    "HostState",
    "HostStatus",
    "JobLogs",
    "JobRunner",
    "JobStatus",
    "Ledger",
    "MakeProvider",
    "Mode",
    "Packages",
    "Provider",
    "ProviderContext",
    "TidyProvider",
]

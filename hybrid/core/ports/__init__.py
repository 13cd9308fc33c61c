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
from hybrid.core.ports.jobs import (
    KEPT_LOG_BYTES,
    JobLogs,
    JobRunner,
    JobStatus,
    LogEnd,
    Packages,
    TaskCount,
)
from hybrid.core.ports.ledger import Ledger, Mode

__all__ = [
    "KEPT_LOG_BYTES",
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
    "LogEnd",
    "MakeProvider",
    "Mode",
    "Packages",
    "Provider",
    "ProviderContext",
    "TaskCount",
    "TidyProvider",
]

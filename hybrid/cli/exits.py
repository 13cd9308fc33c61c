"""What the exit codes mean, and which error ends in which."""

from __future__ import annotations

from enum import IntEnum

from hybrid.client.errors import NoClusterError, RefusedError, UnreachableError
from hybrid.core.errors import (
    CapExceededError,
    ClusterError,
    ConfigError,
    HybridError,
    LedgerError,
)


class ExitCode(IntEnum):
    """Exit codes of `hybrid`. Stable."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_CLUSTER = 3
    REFUSED = 4
    UNHEALTHY = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """What it says, in one sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "what was asked for failed: the job failed, the name is unknown, you said no",
    ExitCode.USAGE: "wrong usage or configuration: edit a flag or a file",
    ExitCode.NO_CLUSTER: "no cluster is running",
    ExitCode.REFUSED: "refused: a conflict, a cap, or something busy",
    ExitCode.UNHEALTHY: "the cluster cannot be reached or is not healthy",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}

_CODE_BY_ERROR: tuple[tuple[type[HybridError], ExitCode], ...] = (
    (NoClusterError, ExitCode.NO_CLUSTER),
    (RefusedError, ExitCode.REFUSED),
    (CapExceededError, ExitCode.REFUSED),
    (ConfigError, ExitCode.USAGE),
    (UnreachableError, ExitCode.UNHEALTHY),
    (ClusterError, ExitCode.UNHEALTHY),
    (LedgerError, ExitCode.UNHEALTHY),
    (HybridError, ExitCode.FAILED),
)


class StopError(HybridError):
    """Ends the command with a message and a code of its own.

    Attributes:
        code: The exit code.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: HybridError) -> ExitCode:
    """Return the exit code for an error."""
    if isinstance(error, StopError):
        return error.code
    return next(code for kind, code in _CODE_BY_ERROR if isinstance(error, kind))

"""Everything that `hybrid.Client` and `hybrid.Job` raise on purpose.

`except hybrid.errors.HybridError` catches all of it; the class says what to do.
"""

from __future__ import annotations

from hybrid.client.errors import (
    ApiError,
    NoClusterError,
    RefusedError,
    RequestError,
    TokenError,
    UnhealthyError,
    UnknownError,
    UnreachableError,
    WaitTimeoutError,
)
from hybrid.core.errors import ConfigError, HybridError

__all__ = [
    "ApiError",
    "ConfigError",
    "HybridError",
    "NoClusterError",
    "RefusedError",
    "RequestError",
    "TokenError",
    "UnhealthyError",
    "UnknownError",
    "UnreachableError",
    "WaitTimeoutError",
]

"""What can go wrong between a user and the controller; the class says what to do."""

from __future__ import annotations

from hybrid.core.errors import ConfigError, HybridError


class NoClusterError(HybridError):
    """No cluster is running here: start one."""


class UnreachableError(HybridError):
    """The controller does not answer, or is not able to: look at its log."""


class ApiError(HybridError):
    """The controller answered with an error.

    Attributes:
        status: HTTP status.
        kind: Class of the error in the controller.
    """

    def __init__(self, message: str, *, status: int, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class RefusedError(ApiError):
    """Not now, or not so: a conflict, a cap, or something busy (409)."""


class UnknownError(ApiError):
    """What was named does not exist (404)."""


class RequestError(ApiError, ConfigError):
    """The request itself is wrong (400, 413, 422)."""


class TokenError(ApiError, ConfigError):
    """The token is wrong (401)."""


class UnhealthyError(ApiError, UnreachableError):
    """The controller cannot do it now (503), or hit a bug (500)."""


class WaitTimeoutError(HybridError, TimeoutError):
    """What was waited for did not happen in time. It goes on."""


_CLASS_BY_STATUS: dict[int, type[ApiError]] = {
    400: RequestError,
    401: TokenError,
    404: UnknownError,
    409: RefusedError,
    413: RequestError,
    422: RequestError,
    500: UnhealthyError,
    503: UnhealthyError,
}


def api_error(status: int, kind: str, message: str) -> ApiError:
    """Return the error whose class says what to do about an answer."""
    return _CLASS_BY_STATUS.get(status, ApiError)(message, status=status, kind=kind)

"""What the cloud says: errors in its own form, and times as it writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

_REASONS = {
    400: "invalid",
    401: "required",
    403: "forbidden",
    404: "notFound",
    409: "alreadyExists",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
    500: "backendError",
    503: "backendError",
}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_PACIFIC = timezone(timedelta(hours=-8))


@dataclass
class ApiError(Exception):
    """A request is refused."""

    status: int
    message: str
    reason: str = ""
    domain: str = ""

    def body(self) -> dict[str, Any]:
        reason = self.reason or _REASONS.get(self.status, "invalid")
        is_usage = "imit" in reason or "uota" in reason
        domain = self.domain or ("usageLimits" if is_usage else "global")
        error = {"message": self.message, "domain": domain, "reason": reason}
        code = _STATUSES.get(self.status, "UNKNOWN")
        return {
            "error": {
                "code": self.status,
                "message": self.message,
                "errors": [error],
                "status": code,
            }
        }


@dataclass(frozen=True)
class OperationFailure:
    """Why an operation that was accepted came to nothing."""

    code: str
    message: str
    http_status: int
    http_message: str = ""
    details: list[dict[str, Any]] = field(default_factory=list)
    causes: list[dict[str, Any]] = field(default_factory=list)

    def errors(self) -> list[dict[str, Any]]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["errorDetails"] = self.details
        return [error, *self.causes]

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"error": {"errors": self.errors()}}
        if self.http_status:
            fields["httpErrorStatusCode"] = self.http_status
            fields["httpErrorMessage"] = self.http_message or "SERVICE UNAVAILABLE"
        return fields


def stamp(at_s: float) -> str:
    """Return a time as the cloud writes it: Pacific, with milliseconds."""
    return datetime.fromtimestamp(at_s, UTC).astimezone(_PACIFIC).isoformat(timespec="milliseconds")


def seconds(text: str) -> float:
    """Return the instant that the cloud wrote."""
    return datetime.fromisoformat(text).timestamp()

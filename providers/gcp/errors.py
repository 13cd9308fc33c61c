"""What Google's errors mean: a code, or else an HTTP status, becomes an error of the port.

Codes are the `reason` of HTTP errors (https://cloud.google.com/compute/docs/troubleshooting/api-errors)
and the `code` of operations (https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-vm-creation);
for gangs see https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-bulk-vm-creation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaError,
    Scope,
    ThrottledError,
    TransientError,
)

_CODES: Mapping[type[ProviderError], tuple[str, ...]] = {
    CapacityError: (
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "REGION_RESOURCE_POOL_EXHAUSTED",
        "RESOURCE_POOL_EXHAUSTED",
        "RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "INSUFFICIENT_CAPACITY",
        "STOCKOUT",
        "VM_MIN_COUNT_NOT_REACHED",
    ),
    QuotaError: (
        "QUOTA_EXCEEDED",
        "LIMIT_EXCEEDED",
        "IP_SPACE_EXHAUSTED",
        "IP_SPACE_EXHAUSTED_WITH_DETAILS",
    ),
    ThrottledError: (
        "RATE_LIMIT_EXCEEDED",
        "USER_RATE_LIMIT_EXCEEDED",
        "CONCURRENT_OPERATION_QUOTA_EXCEEDED",
    ),
    AuthError: (
        "AUTH_ERROR",
        "FORBIDDEN",
        "PERMISSIONS_ERROR",
        "PERMISSION_DENIED",
        "IAM_PERMISSION_DENIED",
        "ACCESS_NOT_CONFIGURED",
        "SERVICE_DISABLED",
        "BILLING_DISABLED",
        "REQUIRED_LOGIN",
    ),
    ConflictError: ("ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS"),
    NotFoundError: ("NOT_FOUND", "RESOURCE_NOT_FOUND"),
    InvalidRequestError: (
        "INVALID",
        "INVALID_FIELD_VALUE",
        "INVALID_PARAMETER",
        "INVALID_USAGE",
        "BAD_REQUEST",
        "UNSUPPORTED_OPERATION",
    ),
    TransientError: (
        "BACKEND_ERROR",
        "INTERNAL_ERROR",
        "RESOURCE_NOT_READY",
        "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
        "RESOURCE_OPERATION_RATE_EXCEEDED",
        "CONDITION_NOT_MET",
    ),
}
_STATUSES: Mapping[int, type[ProviderError]] = {
    400: InvalidRequestError,
    401: AuthError,
    403: AuthError,
    404: NotFoundError,
    408: TransientError,
    409: ConflictError,
    412: TransientError,
    429: ThrottledError,
}
_HINTS: Mapping[type[ProviderError], str] = {
    AuthError: (
        "check the credentials (gcloud auth application-default login, or the file in "
        "GOOGLE_APPLICATION_CREDENTIALS), their permissions, and this machine's clock"
    ),
    QuotaError: "ask Google for a higher quota, or use another region",
}


_METRIC = re.compile(r"Quota '([A-Z0-9_]+)' exceeded")
_PERMISSION = re.compile(r"Required '([A-Za-z.]+)' permission")
_FINAL = (QuotaError, InvalidRequestError, AuthError, ConflictError)
# Says of a gang that it is not whole, and not why.
_NO_CAUSE = ("VM_MIN_COUNT_NOT_REACHED",)
# What a pool names; another pool may name what we may use.
_OF_POOLS = ("compute.images.", "compute.subnetworks.", "iam.serviceAccounts.")


def _plain(code: str) -> str:
    """Return a code without the difference between `quotaExceeded` and `QUOTA_EXCEEDED`."""
    return code.replace("_", "").lower()


_KINDS: Mapping[str, type[ProviderError]] = {
    _plain(code): kind for kind, codes in _CODES.items() for code in codes
}


@dataclass(frozen=True)
class Failure:
    """An error in Google's words.

    Attributes:
        code: Its `reason` or `code`; `""` when it has none, as an error page.
        http_status: 0 when there is none.
    """

    code: str
    message: str
    http_status: int = 0


def kind_of(failure: Failure) -> type[ProviderError]:
    """Return what to do about a failure: the code decides, then the status."""
    kind = _KINDS.get(_plain(failure.code))
    if kind is not None:
        return kind
    if failure.http_status >= 500:
        return TransientError
    return _STATUSES.get(failure.http_status, ProviderError)


def translated(failure: Failure, *, provider: str, doing: str) -> ProviderError:
    """Return the error of the port for a failed request."""
    return error(kind_of(failure), failure, provider=provider, doing=doing)


def refused(failures: Sequence[Failure], *, provider: str, doing: str) -> ProviderError:
    """Return the error of a launch that was accepted, failed, and left nothing.

    Its token is used up: asked again, Google only repeats the failed operation. So what would
    otherwise be tried again becomes "try another offer". Of a gang there may be several
    failures, and the first that says why counts.
    """
    failure = next((f for f in failures if f.code not in _NO_CAUSE), failures[0])
    kind = kind_of(failure)
    if issubclass(kind, NotFoundError):
        kind = InvalidRequestError
    elif not issubclass(kind, _FINAL):
        kind = CapacityError
    return error(kind, failure, provider=provider, doing=doing)


def error(
    kind: type[ProviderError], failure: Failure, *, provider: str, doing: str
) -> ProviderError:
    """Return an error of a given kind, with the failure's own words in it."""
    code = failure.code or (f"HTTP {failure.http_status}" if failure.http_status else "")
    words = " ".join(failure.message.split())[:500]
    hint = _HINTS.get(kind)
    message = f"Google Cloud, {doing}: {words}" + (f" ({code})" if code else "")
    message += f"; {hint}" if hint else ""
    return kind(message, provider=provider, code=code, scope=_scope(kind, failure))


def _scope(kind: type[ProviderError], failure: Failure) -> Scope | None:
    """Return how far a failure reaches, when its words say more than its kind."""
    if issubclass(kind, ThrottledError):
        return Scope.ACCOUNT  # rates are limited by project
    if issubclass(kind, QuotaError) and (match := _METRIC.search(failure.message)):
        if "ALL_REGIONS" in match[1]:
            return Scope.ACCOUNT
        return Scope.POOL if match[1].endswith("_GPUS") else Scope.REGION
    if issubclass(kind, AuthError) and (match := _PERMISSION.search(failure.message)):
        return Scope.POOL if match[1].startswith(_OF_POOLS) else Scope.ACCOUNT
    return None

"""What Baidu's refusals mean.

Baidu publishes its common codes, and some of BCC's own. How a sold-out type, a full quota or
an empty account is called is published nowhere, so parts of codes decide, as in Baidu's own
drivers; `providers.baidu.errors` adds to them. Code, message and request id are kept.
"""

from __future__ import annotations

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
from providers.baidu.params import ErrorKind

_CLASSES: Mapping[ErrorKind, type[ProviderError]] = {
    "auth": AuthError,
    "capacity": CapacityError,
    "conflict": ConflictError,
    "invalid": InvalidRequestError,
    "not_found": NotFoundError,
    "quota": QuotaError,
    "throttled": ThrottledError,
    "transient": TransientError,
}

# Part of a code, in small letters -> kind. The first that fits decides, so the order matters:
# `RateLimitExceeded` is no quota, `BalanceNotEnough` no capacity, and
# `InvalidInstanceId.NotFound` nothing invalid.
_KINDS: Sequence[tuple[str, ErrorKind]] = (
    ("ratelimit", "throttled"),
    ("requestlimit", "throttled"),
    ("flowlimit", "throttled"),
    ("throttl", "throttled"),
    ("toomany", "throttled"),
    ("accessdenied", "auth"),
    ("invalidaccesskeyid", "auth"),
    ("invalidhttpauthheader", "auth"),
    ("signaturedoesnotmatch", "auth"),
    ("requestexpired", "auth"),
    ("optinrequired", "auth"),
    ("qualifynotpass", "auth"),  # the account's owner has not shown who they are
    ("sessiontoken", "auth"),
    ("securitytoken", "auth"),
    ("idempotentparametermismatch", "conflict"),
    ("quota", "quota"),
    ("limitexceed", "quota"),
    ("exceedlimit", "quota"),
    ("balance", "quota"),
    ("payment", "quota"),
    ("arrear", "quota"),
    ("nomoreip", "quota"),
    ("soldout", "capacity"),
    ("notenough", "capacity"),
    ("insufficient", "capacity"),
    ("nostock", "capacity"),
    ("outofstock", "capacity"),
    ("nosuchobject", "not_found"),
    ("notfound", "not_found"),
    ("notexist", "not_found"),
    # The machine is busy with something else; Baidu's Terraform provider repeats such calls.
    ("releasewhilecreating", "transient"),
    ("operationdenied", "transient"),
    ("status", "transient"),
    ("internalerror", "transient"),
    ("serviceunavailable", "transient"),
    ("timeout", "transient"),
    ("notsupport", "invalid"),
    ("invalid", "invalid"),
    ("inappropriatejson", "invalid"),
    ("malformed", "invalid"),
    ("badrequest", "invalid"),
    ("tagexceptions", "invalid"),
)

# How far the trouble reaches, where that is not what is usual of its kind.
_SCOPES: Mapping[str, Scope] = {
    "balance": Scope.ACCOUNT,
    "payment": Scope.ACCOUNT,
    "arrear": Scope.ACCOUNT,
    "nomoreip": Scope.ZONE,
}

_HINTS: Mapping[str, str] = {
    "requestexpired": "compare this machine's clock with the true time",
    "optinrequired": "open BCC for this account in Baidu's console",
    "qualifynotpass": "the account's owner must pass Baidu's real-name check",
    "invalidaccesskeyid": "check the access key: BAIDUCLOUD_ACCESS_KEY, or credentials_file",
    "signaturedoesnotmatch": "check the secret key: BAIDUCLOUD_SECRET_KEY, or credentials_file",
    "accessdenied": "give the keys' user the permissions in docs/fidelity/baidu.md",
}

_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500


@dataclass(frozen=True)
class Failure:
    """One failed call, as far as it is known.

    Attributes:
        status: HTTP status; `None` when there was no answer, or one that is not Baidu's.
        code: Baidu's error code, or `""`.
        message: Baidu's words, or the network's.
    """

    status: int | None = None
    code: str = ""
    message: str = ""
    request_id: str = ""


def error_of(
    failure: Failure, *, provider: str, action: str, own: Mapping[str, ErrorKind]
) -> ProviderError:
    """Return what a failure means to the caller.

    Args:
        failure: What happened.
        provider: Name of the provider.
        action: What was tried, such as `create an instance`.
        own: Kinds by part of a code or message, from the configuration; they come first.
    """
    kind = _kind_of(failure, own)
    facts = [failure.code, f"HTTP {failure.status}" if failure.status else ""]
    facts += [f"request {failure.request_id}" if failure.request_id else ""]
    words = f"cannot {action}: {failure.message or 'no reason given'}"
    if any(facts):
        words += f" ({', '.join(filter(None, facts))})"
    hint = next((hint for part, hint in _HINTS.items() if part in failure.code.lower()), "")
    message = f"{words}; {hint}" if hint else words
    made = ProviderError if kind is None else _CLASSES[kind]
    return made(message, provider=provider, code=failure.code, scope=_scope_of(failure, kind))


def _scope_of(failure: Failure, kind: ErrorKind | None) -> Scope | None:
    if kind == "throttled":
        return Scope.ACCOUNT
    code = failure.code.lower()
    return next((scope for part, scope in _SCOPES.items() if part in code), None)


def _kind_of(failure: Failure, own: Mapping[str, ErrorKind]) -> ErrorKind | None:
    code, everything = failure.code.lower(), f"{failure.code} {failure.message}".lower()
    for part, kind in own.items():
        if part.strip().lower() in everything:
            return kind
    if code:
        for part, kind in _KINDS:
            if part in code:
                return kind
    if failure.status == _TOO_MANY_REQUESTS:
        return "throttled"
    # No answer, not Baidu's answer (a proxy's page), or a server's trouble: the work may have
    # been done. A 404 without Baidu's code is no proof that something is gone.
    if not code or failure.status is None or failure.status >= _SERVER_ERROR:
        return "transient"
    return None

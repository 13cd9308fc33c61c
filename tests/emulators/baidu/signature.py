"""BCE auth v1, from its published description and not from the SDK's code.

https://cloud.baidu.com/doc/Reference/s/njwvz1yfu
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from tests.emulators.baidu.wire import ApiError

# A request from the future is as wrong as an old one. How much Baidu allows is not published.
_AHEAD_S = 1800
_DEFAULT_HEADERS = frozenset({"host", "content-length", "content-type", "content-md5"})
_AUTHORIZATION = re.compile(
    r"bce-auth-v1/([^/]+)/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/(\d+)/([^/]*)/([0-9a-f]{64})"
)


@dataclass(frozen=True)
class Secret:
    """What belongs to an access key; a temporary one has a token and an end."""

    secret_key: str
    session_token: str = ""
    until_s: float = float("inf")


@dataclass(frozen=True)
class Signed:
    """A request as it came; `uri` is raw, with its query, nothing decoded."""

    method: str
    uri: str
    headers: Mapping[str, str]


def verify(request: Signed, secrets: Mapping[str, Secret], *, now_s: float) -> None:
    """Raise `ApiError` unless the request is signed with one of the keys, and lately."""
    authorization = request.headers.get("authorization")
    if not authorization:
        raise ApiError(403, "AccessDenied", "Access denied.")
    match = _AUTHORIZATION.fullmatch(authorization)
    if match is None:
        raise ApiError(400, "InvalidHTTPAuthHeader", "The authorization header is invalid.")
    access_key, stamp, seconds, names, signature = match.groups()
    secret = secrets.get(access_key)
    if secret is None:
        raise ApiError(
            403,
            "InvalidAccessKeyId",
            "The Access Key ID you provided does not exist in our records.",
        )
    signed_at_s = calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))
    if not signed_at_s - _AHEAD_S <= now_s <= signed_at_s + int(seconds):
        raise ApiError(400, "RequestExpired", "Request has expired.")
    key = _hmac(secret.secret_key, f"bce-auth-v1/{access_key}/{stamp}/{seconds}")
    if not hmac.compare_digest(_hmac(key, _canonical(request, names)), signature):
        raise ApiError(
            400,
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided.",
        )
    token = request.headers.get("x-bce-security-token", "")
    if token != secret.session_token:
        raise ApiError(403, "InvalidSessionToken", "The session token is invalid.")  # invented
    if now_s > secret.until_s:
        raise ApiError(403, "SessionTokenExpired", "The session token has expired.")  # invented


def _canonical(request: Signed, names: str) -> str:
    path, _, query = request.uri.partition("?")
    signed_names = frozenset(names.split(";")) if names else _DEFAULT_HEADERS
    if "host" not in signed_names:
        raise ApiError(400, "InvalidHTTPAuthHeader", "host must be signed.")
    headers = sorted(
        f"{_encoded(name)}:{_encoded(value.strip())}"
        for name, value in request.headers.items()
        if value.strip() and (name in signed_names or (not names and name.startswith("x-bce-")))
    )
    parts = [part.partition("=") for part in query.split("&")] if query else []
    parameters = sorted(
        f"{_encoded(unquote(name))}={_encoded(unquote(value))}"
        for name, _, value in parts
        if unquote(name).lower() != "authorization"
    )
    path = _encoded(unquote(path), safe="/")
    return "\n".join([request.method, path, "&".join(parameters), "\n".join(headers)])


def _encoded(text: str, safe: str = "") -> str:
    return quote(text, safe="-_.~" + safe)


def _hmac(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()

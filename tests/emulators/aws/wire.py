"""EC2's query protocol: requests taken apart, answers put together, signatures checked."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
_CREDENTIAL = re.compile(
    r"Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/.*"
    r"SignedHeaders=(?P<headers>[^,]+),\s*Signature=(?P<signature>[0-9a-f]+)"
)
# EC2 answers these with 5xx (capacity among them, as public logs show); all others with 400.
_HTTP = {
    "AuthFailure": 401,
    "UnauthorizedOperation": 403,
    "DryRunOperation": 412,
    "InsufficientInstanceCapacity": 500,
    "InternalError": 500,
    "RequestLimitExceeded": 503,
    "Unavailable": 503,
}

ET.register_namespace("", NAMESPACE)


class Answer(NamedTuple):
    """An HTTP answer. `status` 0: the connection is closed without one."""

    status: int
    content_type: str
    body: bytes


DROPPED = Answer(0, "", b"")


@dataclass(frozen=True)
class Request:
    """One signed request.

    Attributes:
        service: Such as `ec2` or `s3`, from the signature's scope, as is the region.
        params: Of the query protocol, flattened: `TagSpecification.1.Tag.1.Key`.
    """

    environ: Mapping[str, Any]
    body: bytes
    service: str
    region: str
    params: Mapping[str, str]

    @property
    def action(self) -> str:
        """What is asked for, such as `RunInstances`."""
        target = str(self.environ.get("HTTP_X_AMZ_TARGET", ""))
        return self.params.get("Action") or target.rpartition(".")[2]

    def get(self, name: str) -> str:
        """Return a parameter; `""` when it is absent."""
        return self.params.get(name, "")

    def with_params(self, params: Mapping[str, str]) -> Request:
        """Return the same request with other parameters."""
        return replace(self, params=params, body=urlencode(params).encode())

    def numbered(self, prefix: str) -> Iterator[str]:
        """Yield the prefixes `prefix.1`, `prefix.2`, ... that have parameters."""
        pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)(?:\.|$)")
        numbers = {int(match[1]) for key in self.params if (match := pattern.match(key))}
        yield from (f"{prefix}.{number}" for number in sorted(numbers))


def parse(environ: Mapping[str, Any], body: bytes) -> Request:
    scope = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    is_query = b"Action=" in body
    return Request(
        environ=environ,
        body=body,
        service=scope["service"] if scope else "",
        region=scope["region"] if scope else "",
        params=dict(parse_qsl(body.decode(), keep_blank_values=True)) if is_query else {},
    )


def error(code: str, message: str, http: int = 0) -> Answer:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
        f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        f"</Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
    )
    return Answer(http or _HTTP.get(code, 400), "text/xml", text.encode())


def html(http: int = 502) -> Answer:
    return Answer(http, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>")


def tag(name: str) -> str:
    """Return an element's name as ElementTree wants it."""
    return f"{{{NAMESPACE}}}{name}"


def flat(value: object, prefix: str = "") -> dict[str, str]:
    """Return nested data as parameters of the query protocol."""
    if isinstance(value, Mapping):
        pairs = [(f"{prefix}.{key}" if prefix else str(key), v) for key, v in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{prefix}.{number}", v) for number, v in enumerate(value, start=1)]
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return {prefix: text}
    return {key: text for name, v in pairs for key, text in flat(v, name).items()}


def user_data(request: Request) -> bytes:
    return base64.b64decode(request.get("UserData"))


def signature_problem(
    request: Request, secrets: Mapping[str, str], *, now_s: float, token: str = ""
) -> Answer | None:
    """Return EC2's refusal of a request that is not signed as it must be.

    Args:
        request: As it came.
        secrets: Secret by access key.
        now_s: The server's clock.
        token: Session token that temporary credentials must bring; `""` for none.
    """
    environ = request.environ
    scope = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    refusal = "AWS was not able to validate the provided access credentials"
    if scope is None or scope["key"] not in secrets:
        return error("AuthFailure", refusal)
    signed_at = str(environ.get("HTTP_X_AMZ_DATE", ""))
    at = dt.datetime.strptime(signed_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    if abs(at.timestamp() - now_s) > 300:
        return error("RequestExpired", "Request has expired.")
    if token and environ.get("HTTP_X_AMZ_SECURITY_TOKEN") != token:
        return error("RequestExpired", "Request has expired.")
    if _signature(request, scope, secrets[scope["key"]]) != scope["signature"]:
        return error("AuthFailure", refusal)
    return None


def _signature(request: Request, scope: re.Match[str], secret: str) -> str:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    environ = request.environ
    headers = {}
    for name in scope["headers"].split(";"):
        key = name.upper().replace("-", "_")
        headers[name] = environ.get(key if name == "content-type" else f"HTTP_{key}", "")
    query = environ.get("QUERY_STRING", "")
    url = f"http://{environ['HTTP_HOST']}{environ['PATH_INFO']}{'?' if query else ''}{query}"
    signed = AWSRequest(environ["REQUEST_METHOD"], url, data=request.body, headers=headers)
    signed.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
    auth = SigV4Auth(Credentials(scope["key"], secret), scope["service"], scope["region"])
    canonical = auth.canonical_request(signed)
    return str(auth.signature(auth.string_to_sign(signed, canonical), signed))


def permission_problem(request: Request, allowed: Collection[str]) -> Answer | None:
    """Return AWS's refusal of what the caller may not do.

    Tags inside a create call need the right to tag, and a fleet launches in the caller's name.
    """
    needed = [f"{request.service}:{request.action}"]
    if request.action != "CreateTags" and any(k.startswith("TagSpec") for k in request.params):
        needed.append("ec2:CreateTags")
    if request.action == "CreateFleet":
        needed.append("ec2:RunInstances")
    denied = [action for action in needed if action not in allowed]
    if not denied:
        return None
    message = f"You are not authorized to perform this operation: {denied[0]}"
    if request.service == "ec2":
        return error("UnauthorizedOperation", message)
    body = json.dumps({"__type": "AccessDeniedException", "message": message})
    return Answer(400, "application/x-amz-json-1.1", body.encode())

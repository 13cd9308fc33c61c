"""What every request must pass before anything reads it: the token, and a bounded body."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybrid.api.refusals import refusal

NODE_PATHS = frozenset({"/api/v1/join", "/api/v1/join/report"})
"""All that is served at the address for nodes: people and programs use the other one."""

OPEN_PATHS = NODE_PATHS | {"/healthz"}
"""No bearer token: a probe has none, and a joining node proves itself by its join token."""

PACKAGES_PREFIX = "/api/v1/packages/"
BODY_LIMIT_BYTES = 2**20
PACKAGE_LIMIT_BYTES = 100 * 2**20


class Guard:
    """ASGI middleware: token first, then size, then the application.

    The body is read here, whole and bounded, because a framework reads it before it
    runs any check of ours.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        nodes_host: str = "",
        body_limit_bytes: int = BODY_LIMIT_BYTES,
        package_limit_bytes: int = PACKAGE_LIMIT_BYTES,
    ) -> None:
        """Wrap an application.

        Args:
            app: The application.
            token: What every caller must present.
            nodes_host: Address of this machine at which only nodes are served; `""` for none.
            body_limit_bytes: Longest body.
            package_limit_bytes: Longest body of a package.
        """
        self._app = app
        self._nodes_host = nodes_host
        self._token = token.encode()
        self._body_limit_bytes = body_limit_bytes
        self._package_limit_bytes = package_limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, 404 or 413, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"])
        if self._is_for_nodes(scope) and path not in NODE_PATHS:
            await refusal(404, "NotFoundError", "nothing for people here")(scope, receive, send)
            return
        if path not in OPEN_PATHS and not self._is_known(scope["headers"]):
            answer = refusal(401, "TokenError", "the API token is missing or wrong")
            await answer(scope, receive, send)
            return
        is_package = path.startswith(PACKAGES_PREFIX)
        limit = self._package_limit_bytes if is_package else self._body_limit_bytes
        body = None if _announced(scope["headers"]) > limit else await _read(receive, limit)
        if body is None:
            text = f"the request is larger than {limit / 2**20:g} MiB, the limit for {path}"
            await refusal(413, "TooLargeError", text)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _is_for_nodes(self, scope: Scope) -> bool:
        server = scope.get("server")
        return bool(self._nodes_host) and server is not None and server[0] == self._nodes_host

    def _is_known(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1 or not self._token:
            return False
        scheme, _, token = given[0].partition(b" ")
        is_same = hmac.compare_digest(token.strip(), self._token)
        return scheme.lower() == b"bearer" and is_same


def _announced(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the announced body length; 0 when there is none, as with a chunked body."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


async def _read(receive: Receive, limit: int) -> list[Message] | None:
    """Return the messages of the whole body as one, or `None` when it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return [message]
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return [{"type": "http.request", "body": b"".join(parts), "more_body": False}]


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting: Iterator[Message] = iter(messages)

    async def again() -> Message:
        for message in waiting:
            return message
        return await receive()

    return again

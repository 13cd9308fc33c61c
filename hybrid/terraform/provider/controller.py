"""Talks HTTP to a controller."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from hybrid.core.errors import HybridError

_TRY_AGAIN_S = 0.5
_READ_S = 30.0
_PATIENCE_S = 90.0
"""How long a controller may be away: with a changed configuration it starts again."""


class RefusedError(HybridError):
    """The controller said no, and why."""


class UnreachableError(HybridError):
    """Nobody answers at the controller's address."""


class Controller:
    """One controller.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, url: str, token: str, stopping: threading.Event) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise RefusedError(f"the address {url!r} is not one; write http://HOST:PORT")
        self.url = url
        self._token = token
        self._stopping = stopping

    def get(self, path: str, *, patience_s: float = _PATIENCE_S) -> dict[str, Any]:
        """Return the JSON at a path. Raises `RefusedError`, `UnreachableError`."""
        return self._patiently("GET", path, None, patience_s)

    def put(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace what is at a path. Raises as `get`."""
        return self._patiently("PUT", path, body, _PATIENCE_S)

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask for something. Raises as `get`."""
        self._patiently("POST", path, body, _PATIENCE_S)

    def delete(self, path: str) -> dict[str, Any]:
        """Take away what is at a path. Raises as `get`."""
        return self._patiently("DELETE", path, None, _PATIENCE_S)

    def is_there(self) -> bool:
        """Return whether a controller answers."""
        try:
            self._send("GET", "/healthz", None)
        except (RefusedError, UnreachableError):
            return False
        return True

    def wait(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        """Look again and again; `False` when time is up or Terraform stops."""
        for _ in range(max(1, int(timeout_s / _TRY_AGAIN_S))):
            if is_done():
                return True
            if self._stopping.wait(_TRY_AGAIN_S):
                return False
        return False

    def is_ready(self) -> bool:
        """Return whether a controller answers and works."""
        try:
            return bool(self._send("GET", "/healthz", None).get("state") == "ready")
        except (RefusedError, UnreachableError):
            return False

    def began_at_s(self) -> float:
        """Return when the controller that answers now began. Raises as `get`."""
        return float(self.get("status")["cluster"]["started_at_s"])

    def _patiently(
        self, method: str, path: str, body: Mapping[str, Any] | None, patience_s: float
    ) -> dict[str, Any]:
        tries_left = int(patience_s / _TRY_AGAIN_S)
        while True:
            try:
                return self._send(method, f"/api/v1/{path}", body)
            except UnreachableError:
                tries_left -= 1
                if tries_left < 0 or self._stopping.wait(_TRY_AGAIN_S):
                    raise

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self.url.rstrip("/") + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        handlers = [urllib.request.ProxyHandler({})] if _is_here(self.url) else []
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_READ_S) as answer:
                content = json.load(answer)
        except urllib.error.HTTPError as error:
            raise _refusal(error, self.url) from error
        except (OSError, ValueError) as error:
            raise UnreachableError(
                f"the controller at {self.url} cannot be reached ({error}); is it running?"
            ) from error
        return dict(content)


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _refusal(error: urllib.error.HTTPError, url: str) -> HybridError:
    try:
        message = str(json.load(error)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return RefusedError(f"{url} answered {error.code}, but not as a hybrid controller does")
    if error.code == 503:  # it still starts, or its ledger is away: to be asked again
        return UnreachableError(message)
    if error.code == 401:
        message += "; set `token` in the provider block, or HYBRID_TOKEN"
    return RefusedError(message)

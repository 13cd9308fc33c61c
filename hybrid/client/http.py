"""Requests to the controller: retries where they are safe, and errors with a next step."""

from __future__ import annotations

import json
import ssl
import weakref
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hybrid.client import waiting
from hybrid.client.discover import Endpoint
from hybrid.client.errors import ApiError, UnreachableError, api_error
from hybrid.core.errors import ConfigError

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/v1/"
_TRIES = 3
_PAUSE_S = 0.3
_CONNECT_S = 5.0
READ_S = 30.0

Params = Mapping[str, str | int | float | bool]


class Http:
    """One controller, found when first needed and again when it has moved."""

    def __init__(self, find: Callable[[], Endpoint]) -> None:
        self._find = find
        self._endpoint: Endpoint | None = None
        self._client: httpx.Client | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Where the controller listens."""
        if self._endpoint is None:
            self._endpoint = self._find()
        return self._endpoint

    def get(self, path: str, params: Params | None = None, *, read_s: float = READ_S) -> bytes:
        """Return what is at `path`. Raises `ApiError`, `UnreachableError`."""
        return self._send("GET", path, params=params, read_s=read_s, is_repeatable=True)

    def post(
        self, path: str, body: object, *, is_repeatable: bool = False, read_s: float = READ_S
    ) -> bytes:
        """Send JSON. Raises as `get`."""
        content = json.dumps(body).encode()
        return self._send("POST", path, content=content, read_s=read_s, is_repeatable=is_repeatable)

    def put(self, path: str, content: bytes, *, read_s: float = 300.0) -> bytes:
        """Send bytes. Raises as `get`."""
        return self._send("PUT", path, content=content, read_s=read_s, is_repeatable=True)

    def stream(self, path: str, params: Params) -> Iterator[str]:
        """Yield text as it comes; there is no limit on the silence between pieces.

        Raises:
            ApiError: It was refused.
            UnreachableError: The connection broke, now or in between.
        """
        import httpx

        timeout = httpx.Timeout(None, connect=_CONNECT_S)
        try:
            with self._opened().stream(
                "GET", PREFIX + path, params=params, timeout=timeout
            ) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise self._refusal(answer)
                yield from answer.iter_text()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        """Close connections; the next request opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def refresh(self) -> None:
        """Look for the controller again; a restarted one may listen elsewhere."""
        self.close()
        self._endpoint = self._find()

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        content: bytes | None = None,
        read_s: float,
        is_repeatable: bool,
    ) -> bytes:
        def try_once() -> httpx.Response:
            timeout = httpx.Timeout(read_s, connect=_CONNECT_S)
            return self._opened().request(
                method, PREFIX + path, params=params, content=content, timeout=timeout
            )

        import httpx

        answer = self._repeated(try_once, is_repeatable=is_repeatable)
        if not answer.is_success:
            raise self._refusal(answer)
        return answer.content

    def _repeated(
        self, try_once: Callable[[], httpx.Response], *, is_repeatable: bool
    ) -> httpx.Response:
        """Return the answer, trying again where that cannot do a thing twice."""
        import httpx

        tries = 0
        while True:
            tries += 1
            try:
                return try_once()
            except httpx.TimeoutException as error:
                raise self._unreachable(error) from error
            except httpx.ConnectError as error:  # nothing was sent
                if tries >= _TRIES or not self._has_moved():
                    raise self._unreachable(error) from error
            except httpx.TransportError as error:
                if tries >= _TRIES or not is_repeatable:
                    raise self._unreachable(error) from error
                waiting.sleep(_PAUSE_S)

    def _opened(self) -> httpx.Client:
        if self._client is None:
            self._client = _open(self.endpoint)
            weakref.finalize(self, self._client.close)
        return self._client

    def _has_moved(self) -> bool:
        old = self.endpoint
        self.refresh()
        return self._endpoint != old

    def _refusal(self, answer: httpx.Response) -> ApiError:
        try:
            error = json.loads(answer.content)["error"]
            kind, message = str(error["kind"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            raise UnreachableError(
                f"{self.endpoint.url} answered {answer.status_code}, but not as a hybrid "
                "controller does; check the address, or the proxy between"
            ) from None
        if answer.status_code == 401:
            message += (
                f" for {self.endpoint.url}; unset HYBRID_TOKEN to use the one in the state "
                "folder, or set it to the content of the file api_token there"
            )
        return api_error(answer.status_code, kind, message)

    def _unreachable(self, error: httpx.TransportError) -> UnreachableError:
        import httpx

        where = f"the controller at {self.endpoint.url}"
        if isinstance(error, httpx.ConnectError):
            text = f"{where} cannot be reached ({error})"
        elif isinstance(error, httpx.TimeoutException):
            text = f"{where} did not answer in time"
        else:
            text = f"the connection to {where} broke ({error})"
        log = self.endpoint.log_path or "its log"
        return UnreachableError(f"{text}; see {log}, or run `hybrid doctor`")


def _open(endpoint: Endpoint) -> httpx.Client:
    import httpx

    parts = urlsplit(endpoint.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"the address {endpoint.url!r} is not one; write for example http://127.0.0.1:8000"
        )
    # an empty context: loading the system's certificates costs more than the whole request
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if parts.scheme == "http" else True
    try:
        return httpx.Client(
            base_url=endpoint.url,
            headers={
                "Authorization": f"Bearer {endpoint.token}",
                "Content-Type": "application/json",
            },
            verify=plain,
            trust_env=not _is_here(parts.hostname),  # a proxy has no business there
        )
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigError(
            f"the address {endpoint.url!r} or its token is not usable: {error}"
        ) from error


def _is_here(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified

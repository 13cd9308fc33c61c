"""One bounded HTTP request: a server that answers for ever costs its time limit only."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING

from hybrid.core.errors import HybridError

if TYPE_CHECKING:
    import httpx

    from hybrid.core.ports.clock import Clock

_MOST_BYTES = 32 * 2**20
_MOST_WORDS = 200


class UnreadableError(HybridError):
    """Something that was to be measured could not be read; its value is unknown."""


class Fetcher:
    """Reads pages over HTTP. Thread-safe.

    Args:
        clock: Time.
        timeout_s: Longest time for one page, from the first byte sent to the last one read.
        headers: Sent with every request; never shown.
    """

    def __init__(
        self, clock: Clock, *, timeout_s: float, headers: Mapping[str, str] | None = None
    ) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._headers = dict(headers or {})
        self._lock = Lock()
        self._http: httpx.Client | None = None

    def get(self, url: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return the body of a page.

        Raises:
            UnreadableError: No answer in time, not a good one, or too much of it.
        """
        import httpx

        until_s = self._clock.monotonic_s() + self._timeout_s
        with self._lock:
            if self._http is None:
                self._http = httpx.Client(timeout=self._timeout_s, trust_env=False)
            http = self._http
        try:
            with http.stream("GET", url, params=params, headers=self._headers) as response:
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise UnreadableError(f"{url} answers with more than 32 MiB")
                    if self._clock.monotonic_s() > until_s:
                        raise UnreadableError(self._late(url))
        except httpx.TimeoutException as err:
            raise UnreadableError(self._late(url)) from err
        except (httpx.HTTPError, httpx.InvalidURL) as err:
            raise UnreadableError(f"{url} cannot be reached: {err}") from err
        if response.status_code != 200:
            words = " ".join(bytes(body).decode(errors="replace").split())[:_MOST_WORDS]
            raise UnreadableError(f"{url} answers with HTTP {response.status_code}: {words}")
        return bytes(body)

    def close(self) -> None:
        """Close all connections."""
        if self._http is not None:
            self._http.close()

    def _late(self, url: str) -> str:
        return f"{url} did not answer within {self._timeout_s:g} s"

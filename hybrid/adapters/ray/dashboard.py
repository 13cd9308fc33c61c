"""HTTP to Ray's dashboard: token, time limits, and errors in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hybrid.core.errors import ClusterError


class Dashboard:
    """One dashboard. Thread-safe; connects when first used.

    Answers are handed back whatever their status, except those that say the token is wrong.
    """

    def __init__(self, url: str, token: str, *, timeout_s: float) -> None:
        import httpx

        self.url = url.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=self.url,
            headers=self.headers,
            timeout=httpx.Timeout(timeout_s, connect=min(3.0, timeout_s)),
            trust_env=False,  # no proxy: the head is on a private network
        )

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Return the `httpx.Response` of one request.

        Raises:
            ClusterError: No answer, or our token was refused.
        """
        with self._translated(f"{method} {path}"):
            response = self._http.request(method, path, **options)
            self._check_token(response)
            return response

    @contextmanager
    def stream(self, path: str) -> Iterator[Any]:
        """Hand out the `httpx.Response` of a GET whose body is read inside the block.

        Raises:
            ClusterError: No answer, it broke, or our token was refused.
        """
        with self._translated(f"GET {path}"), self._http.stream("GET", path) as response:
            self._check_token(response)
            yield response

    @contextmanager
    def _translated(self, request: str) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.TimeoutException as err:
            raise ClusterError(
                f"Ray's dashboard at {self.url} did not answer {request} in time; check "
                "that the head is up and how loaded it is"
            ) from err
        except httpx.HTTPError as err:
            raise ClusterError(
                f"Ray's dashboard at {self.url} cannot be reached ({err}); check that the head "
                "runs with its dashboard, and that this port is open from here"
            ) from err

    def _check_token(self, response: Any) -> None:
        if response.status_code in (401, 403):
            raise ClusterError(
                f"Ray's dashboard at {self.url} refused our token: the head was started with "
                "another one; restart the head, or the controller, with the same token"
            )

    def json(self, response: Any, what: str) -> Any:
        """Return the decoded body of a good answer.

        Raises:
            ClusterError: The answer is an error, or is not JSON.
        """
        try:
            if response.status_code == 200:
                return response.json()
        except ValueError:
            pass
        raise self.error(response, what)

    def error(self, response: Any, what: str) -> ClusterError:
        """Return what to raise for an answer that nobody expected."""
        return ClusterError(
            f"Ray's dashboard at {self.url} could not {what}: HTTP {response.status_code}, "
            f"{reason_of(response.text)}; see dashboard.log in Ray's log folder on the head"
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


def reason_of(text: str) -> str:
    """Return the one sentence that matters in an error body, which is often a traceback."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line.strip(".")]
    if not lines:
        return "no reason given"
    reason = lines[-1]
    kind, _, rest = reason.partition(": ")
    if rest and kind.isidentifier() and kind.endswith(("Error", "Exception")):
        reason = rest
    return reason[:500]

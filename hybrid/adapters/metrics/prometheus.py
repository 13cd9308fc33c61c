"""The value of any query to Prometheus, or to what speaks its HTTP API."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from hybrid.adapters.metrics.fetch import Fetcher, UnreadableError
from hybrid.core.slo import Reading, Seen, Slo

if TYPE_CHECKING:
    from hybrid.core.ports.clock import Clock

_PATH = "/api/v1/query"
_MS: Mapping[str, float] = {"s": 1_000.0, "ms": 1.0}


class PrometheusQuery:
    """See `hybrid.core.ports.slo.SloSource`. One query, for one service.

    Args:
        name: The service.
        url: Of the server, with or without the path of its API.
        query: In PromQL; its answer must be one number, the percentile.
        slo: The promise.
        clock: Time.
        unit: Of the answer.
        token: Sent as a bearer token.
        basic: `user:password`, sent as basic authentication.
        timeout_s: For each of at most two requests.
    """

    def __init__(
        self,
        name: str,
        url: str,
        query: str,
        slo: Slo,
        clock: Clock,
        *,
        unit: Literal["s", "ms"] = "s",
        token: str = "",
        basic: str = "",
        timeout_s: float = 5.0,
    ) -> None:
        self._name = name
        base = url.rstrip("/")
        self._url = base if base.endswith(_PATH) else f"{base}{_PATH}"
        self._query = query
        self._slo = slo
        self._unit = unit
        self._clock = clock
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if basic:
            word = base64.b64encode(basic.encode()).decode()
            headers = {"Authorization": f"Basic {word}"}
        self._fetcher = Fetcher(clock, timeout_s=timeout_s, headers=headers)
        self._taken_at_s: float | None = None

    def look(self, now_s: float) -> Mapping[str, Seen]:
        """See `SloSource.look`."""
        # The first reading stands for a step too: the query itself looks back.
        span_s = self._slo.step_s if self._taken_at_s is None else now_s - self._taken_at_s
        if span_s < self._slo.step_s * 0.95:
            return {self._name: Seen()}
        self._taken_at_s = now_s
        try:
            value_ms = self._value() * _MS[self._unit]
        except UnreadableError as error:
            reading = Reading(now_s, span_s, why=str(error))
        else:
            reading = Reading(now_s, span_s, value_ms)
        return {self._name: Seen(reading)}

    def close(self) -> None:
        """Close all connections."""
        self._fetcher.close()

    def _value(self) -> float:
        """Return the answer.

        Raises:
            UnreadableError: There is none, or none that can be one.
        """
        at_s, value = self._ask(self._query)
        if not math.isfinite(value) or value < 0:
            word = "NaN" if math.isnan(value) else f"{value:g}"
            raise UnreadableError(
                f"Prometheus answers the query with {word}: most likely it saw no request"
            )
        self._check_age(at_s)
        return value

    def _check_age(self, at_s: float) -> None:
        """Raise when the number is from before the window.

        The time in an answer is that of the question. For a plain metric, such as one that a rule
        records, `timestamp` tells when it was made; a server that cannot say is believed.
        """
        try:
            _, made_at_s = self._ask(f"timestamp({self._query})")
        except UnreadableError:
            made_at_s = at_s
        age_s = max(at_s - made_at_s, self._clock.now_s() - at_s)
        if age_s > self._slo.window_s:
            raise UnreadableError(
                f"the answer of Prometheus is {age_s:.0f} s old, more than the window of "
                f"{self._slo.window_s:g} s; look whether it still scrapes, and at both clocks"
            )

    def _ask(self, query: str) -> tuple[float, float]:
        body = self._fetcher.get(self._url, {"query": query})
        try:
            answer = json.loads(body)
            if answer["status"] != "success":
                raise UnreadableError(f"Prometheus refuses the query: {answer.get('error')}")
            return _number(answer["data"])
        except (ValueError, LookupError, TypeError, AttributeError) as err:
            raise UnreadableError(
                f"{self._url} does not answer as Prometheus does; check services.url"
            ) from err


def _number(data: Any) -> tuple[float, float]:
    """Return the instant and the value of an answer that is one number."""
    result = data["result"]
    if data["resultType"] == "vector":
        if not result:
            raise UnreadableError("Prometheus has no sample for the query")
        if len(result) > 1:
            raise UnreadableError(
                f"the query has {len(result)} answers, and one is needed; put max(...) around it"
            )
        result = result[0]["value"]
    elif data["resultType"] != "scalar":
        raise UnreadableError(
            f"the query answers with a {data['resultType']}; write one that gives a number"
        )
    return float(result[0]), float(result[1])

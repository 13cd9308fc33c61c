"""The value of a Prometheus query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.adapters.metrics import PrometheusQuery
from hybrid.core.slo import Reading, Slo
from tests.adapters.metrics.pages import Pages, serving
from tests.world.clock import VirtualClock

SLO = Slo(target_ms=500, window_s=60)
CLOCK = VirtualClock()
NOW = CLOCK.now_s()


@pytest.fixture
def server() -> Iterator[Pages]:
    with serving() as pages:
        yield pages


def vector(*values: str, at_s: float = NOW) -> str:
    result = [{"metric": {"n": str(n)}, "value": [at_s, v]} for n, v in enumerate(values)]
    return answer({"resultType": "vector", "result": result})


def answer(data: Any) -> str:
    return json.dumps({"status": "success", "data": data})


def says(server: Pages, body: str, status: int = 200) -> None:
    """Answer as Prometheus does: a sample that was computed now is from now."""
    made = vector(str(NOW))
    server.answer = lambda query: (status, made if query == "timestamp(q)" else body)


def asked(server: Pages, **options: Any) -> Reading:
    source = PrometheusQuery("s", server.url, "q", SLO, CLOCK, timeout_s=2.0, **options)
    found = source.look(0.0)["s"].reading
    source.close()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("body", "unit", "value_ms"),
    [
        pytest.param(vector("0.25"), "s", 250.0, id="seconds"),
        pytest.param(vector("250"), "ms", 250.0, id="milliseconds"),
        pytest.param(vector("0"), "s", 0.0, id="a zero that was answered"),
        pytest.param(
            answer({"resultType": "scalar", "result": [NOW, "0.5"]}), "s", 500.0, id="a scalar"
        ),
    ],
)
def test_a_number_is_the_reading(server: Pages, body: str, unit: str, value_ms: float) -> None:
    says(server, body)

    assert asked(server, unit=unit) == Reading(at_s=0.0, span_s=10.0, value_ms=value_ms)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        pytest.param(vector("NaN"), 200, "answers the query with NaN: most likely", id="NaN"),
        pytest.param(vector("+Inf"), 200, "answers the query with inf", id="infinite"),
        pytest.param(vector("-1"), 200, "answers the query with -1", id="below zero"),
        pytest.param(vector(), 200, "has no sample for the query", id="empty"),
        pytest.param(vector("1", "2"), 200, "has 2 answers, and one is needed", id="several"),
        pytest.param(vector("1", at_s=NOW - 61), 200, "is 61 s old, more than the", id="stale"),
        pytest.param(answer({"resultType": "matrix", "result": []}), 200, "a matrix", id="matrix"),
        pytest.param(
            json.dumps({"status": "error", "error": "parse error"}),
            200,
            "refuses the query: parse error",
            id="refused",
        ),
        pytest.param("<html>", 200, "does not answer as Prometheus does", id="something else"),
        pytest.param("[]", 200, "does not answer as Prometheus does", id="other JSON"),
        pytest.param("wrong\ntoken", 401, "answers with HTTP 401: wrong token", id="unauthorised"),
    ],
)
def test_everything_else_is_unknown_and_says_why(
    server: Pages, body: str, status: int, why: str
) -> None:
    says(server, body, status)

    found = asked(server)

    assert found.value_ms is None
    assert why in found.why
    assert not found.is_quiet


def test_a_sample_that_was_made_long_ago_is_unknown_though_it_was_asked_now(server: Pages) -> None:
    server.answer = lambda query: (
        200,
        vector(str(NOW - 90)) if query == "timestamp(q)" else vector("0.1"),
    )

    assert "is 90 s old, more than the window of 60 s" in asked(server).why


def test_a_server_that_cannot_tell_the_age_is_believed(server: Pages) -> None:
    server.answer = lambda query: (400, "no such function") if "(" in query else (200, vector("1"))

    assert asked(server).value_ms == 1_000.0


def test_a_server_that_is_away_is_unknown(server: Pages) -> None:
    source = PrometheusQuery("s", "http://127.0.0.1:1", "q", SLO, CLOCK, timeout_s=0.5)

    found = source.look(0.0)["s"].reading

    assert found is not None
    assert "http://127.0.0.1:1/api/v1/query cannot be reached" in found.why


def test_a_server_that_answers_slowly_costs_its_time_limit(server: Pages) -> None:
    from hybrid.adapters.clock import SystemClock

    server.says(vector("1") + " " * 200)
    server.delay_s = 0.02
    source = PrometheusQuery("s", server.url, "q", SLO, SystemClock(), timeout_s=0.3)

    found = source.look(0.0)["s"].reading

    assert found is not None
    assert found.why.endswith("did not answer within 0.3 s")


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"basic": "me:pass"}, "Basic bWU6cGFzcw=="),
        ({}, None),
    ],
)
def test_credentials_are_sent_and_never_told(
    server: Pages, options: dict[str, str], header: str | None
) -> None:
    server.says("no", 403)

    found = asked(server, **options)

    assert server.asked[0].headers.get("Authorization") == header
    assert not any(secret in found.why for secret in options.values())


def test_it_asks_once_in_a_step(server: Pages) -> None:
    server.says(vector("1"))
    source = PrometheusQuery("s", server.url, "q", SLO, CLOCK)

    found = [source.look(at_s)["s"].reading for at_s in (0.0, 5.0, 9.6, 12.0)]

    assert [r is not None for r in found] == [True, False, True, False]
    assert len(server.asked) == 4
    assert server.asked[0].query == "q"

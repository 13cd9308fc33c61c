"""Services and their promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.core.slo import Slo
from tests.settings.writing import load_text, problem, problems

PROMETHEUS = "source: prometheus, url: 'http://prom:9090/', query: 'max(p95)'"


def test_a_service_needs_a_name_and_a_target(tmp_path: Path) -> None:
    settings = load_text(tmp_path, "name: a\nservices: [{name: chat, target: 800ms}]")

    (service,) = settings.services
    assert service.slo == Slo(target_ms=800, percentile=95, window_s=60)
    assert (service.app_name, service.shape) == ("chat", {"GPU": 1, "CPU": 1})
    assert service.source == "serve"


def test_every_key_is_read(tmp_path: Path) -> None:
    text = (
        "name: a\nservices:\n- {name: chat, app: llm, deployment: Model, target: 20ms, "
        f"percentile: 99.9, window: 2m, {PROMETHEUS}, unit: ms, token_env: PROM, "
        "max_replicas: 3, gpus: 0.5, cpus: 0}"
    )

    (service,) = load_text(tmp_path, text).services

    assert service.slo == Slo(target_ms=20, percentile=99.9, window_s=120)
    assert (service.app_name, service.shape, service.url) == (
        "llm",
        {"GPU": 0.5},
        "http://prom:9090",
    )
    assert service.credentials({"PROM": "secret"}) == ("secret", "")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "services[0].target: it is missing; add it"),
        ("target: 0s", "'0s' is no latency to promise; write 1ms or more"),
        ("target: 800", "'800' is not a duration; it has no unit"),
        ("target: 1s, window: 10s", "'10s' is too short, since Ray tells its figures every 10 s"),
        ("target: 1s, percentile: 100", "100 is not a percentile; write for example 95"),
        ("target: 1s, percentile: p95", "'p95' is not a number; write"),
        ("target: 1s, max_replicas: 0", "0 is too small; write 1 or more"),
        ("target: 1s, borrow: -1", "-1 is too small; write 0 or more"),
        ("target: 1s, borrow: 9", "there are 8 replicas at most; write no more than that"),
        ("target: 1s, borrow: 1, gpus: 0", "batch jobs lend GPUs, and a replica takes none"),
        ("target: 1s, borrow_priority: 101", "101 is not a priority; write a whole number from 0"),
        ("target: 1s, borrow_priority: -1", "-1 is not a priority; write a whole number from 0"),
        ("target: 1s, gpus: 0, cpus: 0", "a replica of no GPU and no CPU needs no node"),
        ("target: 1s, source: datadog", "'datadog' is not possible here; write 'serve' or 'prom"),
        ("target: 1s, url: 'http://p:1'", "services[0].url: only source: prometheus uses it"),
        ("target: 1s, measure: processing", "services[0].deployment: it is missing, and measure"),
        (f"target: 1s, {PROMETHEUS}, measure: processing, deployment: D", "says what of Ray Serve"),
        ("target: 1s, source: prometheus, query: q", "services[0].url: it is missing, and source"),
        ("target: 1s, source: prometheus, url: 'http://p'", "services[0].query: it is missing"),
        (f"target: 1s, {PROMETHEUS}, token_env: A, basic_env: B", "there is a token too; keep"),
        (f"target: 1s, {PROMETHEUS}, token_env: 's3cret-token'", "never the secret itself"),
        (f"target: 1s, {PROMETHEUS}, token: abc", "a secret does not belong in this file"),
        ("target: 1s, source: prometheus, query: q, url: prom", "is not the URL of a server"),
        ("target: 1s, source: prometheus, query: q, url: 'http://a:x'", "not the URL of a server"),
        ("target: 1s, source: prometheus, query: q, url: 'http://u:p@h'", "a password does not"),
        ("target: 1s, metric: p99", "the key 'metric' is not known"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, keys: str, message: str) -> None:
    comma = ", " if keys else ""

    found = problems(tmp_path, f"name: a\nservices: [{{name: chat{comma}{keys}}}]")

    assert any(message in line for line in found), found
    assert "s3cret" not in "".join(found)


def test_two_services_with_one_name_are_refused(tmp_path: Path) -> None:
    text = "name: a\nservices: [{name: x, target: 1s}, {name: x, target: 2s}]"

    assert "services[1].name: 'x' is also the name of services[0]" in problem(tmp_path, text)


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "'a b' is not a name" in problem(
        tmp_path, "name: a\nservices: [{name: a b, target: 1s}]"
    )


def test_a_variable_that_is_not_there_is_said(tmp_path: Path) -> None:
    text = f"name: a\nservices: [{{name: x, target: 1s, {PROMETHEUS}, basic_env: PROM}}]"
    (service,) = load_text(tmp_path, text).services

    with pytest.raises(
        ValueError, match="the variable PROM is not set where the controller starts"
    ):
        service.credentials({})

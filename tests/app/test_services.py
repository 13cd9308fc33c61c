"""Putting the watch over services together."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.app.services import Services, watch_services
from hybrid.core.errors import ConfigError
from tests.settings.writing import load_text

PROMETHEUS = "source: prometheus, url: 'http://127.0.0.1:9', query: q"


def watched(folder: Path, services: str, env: dict[str, str] | None = None) -> Services:
    settings = load_text(folder, f"name: a\nservices: {services}")
    return watch_services(
        settings,
        env or {},
        SystemClock(),
        head_address="127.0.0.1:9",
        ray_token="",
        tell=lambda *_words: None,
    )


def test_without_services_no_thread_is_started(tmp_path: Path) -> None:
    made = watched(tmp_path, "[]")

    assert made.closers == ()
    assert made.watch.views() == ()


def test_sources_that_are_away_make_services_unknown_with_the_reason(tmp_path: Path) -> None:
    services = f"[{{name: a, target: 1s}}, {{name: b, target: 1s, app: x, {PROMETHEUS}}}]"
    made = watched(tmp_path, services)
    deadline_s = time.monotonic() + 20
    try:
        while time.monotonic() < deadline_s:
            started_s = time.monotonic()
            made.watch.look([], {})
            assert time.monotonic() - started_s < 1, "a look waits for nobody"
            _, b = made.watch.views()
            if "cannot be reached" in b.why:
                break
            time.sleep(0.05)
    finally:
        for close in made.closers:
            close()

    a, b = made.watch.views()
    assert (a.state, b.state, b.app) == ("unknown", "unknown", "x")
    assert "http://127.0.0.1:9/api/v1/query cannot be reached" in b.why
    assert b.measured_ms is None


def test_a_missing_variable_is_told_with_its_place(tmp_path: Path) -> None:
    services = f"[{{name: a, target: 1s, {PROMETHEUS}, token_env: PROM}}]"

    with pytest.raises(ConfigError, match=r"services\[0\]: the variable PROM is not set where"):
        watched(tmp_path, services)

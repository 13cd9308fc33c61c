"""The policy that Ray Serve calls, without Ray."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from hybrid.core.slo import Load, Reading, Seen
from hybrid.serve import slo_policy
from hybrid.serve.policy import SloPolicy
from tests.adapters.metrics.pages import serving

PROMETHEUS = {"prometheus_url": "http://prom:9090", "query": "q"}


@dataclass
class Context:
    """What Serve's `AutoscalingContext` has of what is used."""

    app_name: str = "chat"
    deployment_name: str = "Model"
    current_num_replicas: int = 2
    target_num_replicas: int = 2
    capacity_adjusted_max_replicas: int = 9
    total_num_requests: float = 4.0
    policy_state: dict[str, Any] = field(default_factory=dict)


def policy(**options: Any) -> SloPolicy:
    kwargs = slo_policy("1s", **options)["policy_kwargs"]
    return SloPolicy(**json.loads(json.dumps(kwargs)))  # as Serve stores them


def shown(made: SloPolicy, *values: float | None, load: Load = Load()) -> int:  # noqa: B008
    """Let the policy have measured this until now, and return what it decides."""
    made(Context())
    assert made._watcher is not None
    made._watcher.stop()
    now_s = made._clock.monotonic_s()
    for n, value in enumerate(values):
        at_s = now_s - 10.0 * (len(values) - 1 - n)
        reading = Reading(at_s, 10.0, value, "" if value is not None else "gone", rate_rps=10)
        made._watcher.board.put({"service": Seen(reading, load)})
    return made(Context())[0]


def test_it_is_what_serve_takes() -> None:
    made = slo_policy("800ms", window="2m", max_replicas=4)

    assert made["policy_function"] == "hybrid.serve.policy:SloPolicy"
    assert made["policy_kwargs"]["target_ms"] == 800
    assert made["policy_kwargs"]["window_s"] == 120
    assert json.loads(json.dumps(made)) == made


def test_a_breach_raises_and_unknown_holds() -> None:
    assert shown(policy(), *(3_000,) * 6) > 2
    assert shown(policy(), *(None,) * 6) == 2
    assert shown(policy(), *(300,) * 6) == 2
    assert shown(policy()) == 2


def test_its_own_limits_and_those_of_serve_hold() -> None:
    load = Load(2, 2, 900.0)
    assert shown(policy(), *(3_000,) * 6, load=load) == 5
    assert shown(policy(max_replicas=3), *(3_000,) * 6, load=load) == 3
    assert shown(policy(min_replicas=4), *(300,) * 6) == 4
    assert shown(policy(min_replicas=12), *(300,) * 6) == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "0s"}, "target must be above 0"),
        ({"target": "800"}, "it has no unit"),
        ({"percentile": 100}, "percentile must lie between 0 and 100"),
        ({"window": "5s"}, "window must be 20s or more"),
        ({"min_replicas": -1}, "min_replicas must be 0 or more"),
        ({"min_replicas": 3, "max_replicas": 2}, "max_replicas is too small"),
        ({"measure": "x"}, "no such measure"),
        ({"unit": "h"}, "unit must be s or ms"),
        ({"query": "q"}, "prometheus_url and query go together"),
        ({"token_env": "X"}, "token_env and basic_env are for Prometheus"),
        ({**PROMETHEUS, "token_env": "X", "basic_env": "Y"}, "keep token_env or basic_env"),
    ],
)
def test_what_cannot_be_used_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        slo_policy(options.pop("target", "1s"), **options)


def test_it_asks_prometheus_in_a_thread_of_its_own() -> None:
    with serving() as server:
        server.answer = lambda query: (
            200,
            json.dumps(
                {
                    "status": "success",
                    "data": {
                        "resultType": "scalar",
                        "result": [time.time(), str(time.time() if "(" in query else 0.25)],
                    },
                }
            ),
        )
        made = policy(prometheus_url=server.url, query="q")
        made(Context())
        assert made._watcher is not None
        deadline_s = time.monotonic() + 10
        while not made._watcher.board.take("service")[0] and time.monotonic() < deadline_s:
            time.sleep(0.01)
        (reading,) = made._watcher.board.take("service")[0]
        made._watcher.stop()

    assert reading.value_ms == 250


def test_a_missing_variable_is_unknown_and_not_a_crash() -> None:
    made = policy(**PROMETHEUS, token_env="HYBRID_TEST_NO_SUCH_VARIABLE")
    made(Context())
    assert made._watcher is not None
    deadline_s = time.monotonic() + 10
    while not made._watcher.board.take("service")[0] and time.monotonic() < deadline_s:
        time.sleep(0.01)
    made._watcher.stop()

    (reading,) = made._watcher.board.take("service")[0][:1]
    assert "HYBRID_TEST_NO_SUCH_VARIABLE is not set where Serve's controller runs" in reading.why


def test_its_thread_ends_when_serve_forgets_it() -> None:
    made = policy(**PROMETHEUS)
    made(Context())
    assert made._watcher is not None
    board, thread = made._watcher.board, made._watcher._thread

    del made

    assert board.stopped.is_set()
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_it_is_imported_without_what_is_heavy() -> None:
    code = (
        "import sys, hybrid.serve.policy\n"
        "heavy = {'ray', 'pydantic', 'httpx', 'grpc', 'fastapi', 'sqlalchemy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

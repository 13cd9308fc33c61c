"""A policy for Ray Serve that keeps a promise about latency.

It runs inside Serve's own controller. Importing it loads neither Ray nor pydantic.
"""

from __future__ import annotations

from typing import Any

from hybrid.core.quantity import duration_s

__all__ = ["slo_policy"]


def slo_policy(
    target: str,
    *,
    percentile: float = 95.0,
    window: str = "60s",
    min_replicas: int = 1,
    max_replicas: int | None = None,
    calm: str = "5m",
    step: str = "1m",
    silent: str | None = "10m",
    measure: str = "end_to_end",
    prometheus_url: str = "",
    query: str = "",
    unit: str = "s",
    token_env: str = "",
    basic_env: str = "",
) -> dict[str, Any]:
    """Return the `policy` of a deployment's `AutoscalingConfig` that keeps a promise.

    Replicas are added when the promise is broken, twice as many at most in one step. None is taken
    away while the latency is not known. After the peak they go one at a time, when one fewer has
    been enough for long. Serve's own limits and delays hold on top::

        @serve.deployment(
            autoscaling_config={
                "min_replicas": 1,
                "max_replicas": 8,
                "upscale_delay_s": 0,
                "downscale_delay_s": 0,
                "policy": slo_policy("800ms"),
            },
            ray_actor_options={"num_gpus": 1, **hybrid.prefer_onprem()},
        )
        class Model: ...

    Needs this package where Serve's controller runs, which is the head.

    Args:
        target: The latency that must not be exceeded, such as `800ms`.
        percentile: Of the requests in the window.
        window: Judged over this long; 20s at least.
        min_replicas: Limit of its own.
        max_replicas: Limit of its own; `None` for Serve's.
        calm: One replica fewer must have been enough for this long before one goes.
        step: Time between two replicas that go.
        silent: A replica goes when no request came for this long, and that was seen; `None`: never.
        measure: `end_to_end`: what callers of the HTTP proxy wait. `processing`: only the time in
            a replica, without the queue before it.
        prometheus_url: Ask this Prometheus instead of the nodes.
        query: In PromQL; its answer must be one number.
        unit: Of the query's answer: `s` or `ms`.
        token_env: Variable of Serve's controller that holds a bearer token for Prometheus.
        basic_env: The same with `USER:PASSWORD`.

    Raises:
        ValueError: A value cannot be used; one sentence.
    """
    options: dict[str, Any] = {
        "target_ms": duration_s(target) * 1000,
        "percentile": percentile,
        "window_s": duration_s(window),
        "min_replicas": min_replicas,
        "max_replicas": max_replicas,
        "calm_s": duration_s(calm),
        "step_s": duration_s(step),
        "silent_s": None if silent is None else duration_s(silent),
        "measure": measure,
        "prometheus_url": prometheus_url,
        "query": query,
        "unit": unit,
        "token_env": token_env,
        "basic_env": basic_env,
    }
    from hybrid.serve.options import Options

    Options.of(options)
    return {"policy_function": "hybrid.serve.policy:SloPolicy", "policy_kwargs": options}

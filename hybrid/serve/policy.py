"""The autoscaling policy that Ray Serve calls. Use it through `hybrid.serve.slo_policy`."""

from __future__ import annotations

import logging
import os
import weakref
from typing import TYPE_CHECKING, Any

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.metrics import Ask, PrometheusQuery, ServeMetrics, Watcher
from hybrid.core.slo import Load, SloState, Steering, steer
from hybrid.serve.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hybrid.core.ports.slo import SloSource

_NAME = "service"


class SloPolicy:
    """Decides on the replicas of one deployment. Serve makes one, and calls it every moment.

    Args:
        options: See `hybrid.serve.slo_policy`, which writes them down.
    """

    def __init__(self, **options: Any) -> None:
        self._options = Options.of(options)
        self._clock = SystemClock()
        self._memory = Steering()
        self._watcher: Watcher | None = None
        self._told: tuple[SloState, int] | None = None

    def __call__(self, ctx: Any) -> tuple[int, dict[str, Any]]:
        """Return how many replicas there should be, and nothing for Serve to keep.

        Args:
            ctx: Serve's `AutoscalingContext`.
        """
        options = self._options
        watcher = self._watch(ctx.app_name or "", ctx.deployment_name)
        judgement, load = watcher.judge(_NAME)
        load = Load(
            running=ctx.current_num_replicas,
            target=ctx.target_num_replicas,
            in_system=_in_system(load, ctx),
        )
        count, self._memory = steer(
            self._memory,
            judgement,
            load,
            options.slo,
            options.steering,
            now_s=self._clock.monotonic_s(),
        )
        count = max(count, options.min_replicas)
        for most in (options.max_replicas, ctx.capacity_adjusted_max_replicas):
            count = count if most is None else min(count, most)
        if self._told != (judgement.state, count):
            self._told = (judgement.state, count)
            logging.getLogger("ray.serve").info(
                "slo_policy %s/%s: %s, %s replicas wanted: %s",
                ctx.app_name,
                ctx.deployment_name,
                judgement.state.value,
                count,
                self._memory.why,
            )
        return count, {}

    def _watch(self, app: str, deployment: str) -> Watcher:
        if self._watcher is None:
            make = _maker(self._options, app, deployment)
            self._watcher = Watcher(make, {_NAME: self._options.slo}, self._clock)
            self._watcher.start()
            # Serve forgets a policy when the deployment changes: its thread ends with it.
            weakref.finalize(self, self._watcher.board.stopped.set)
        return self._watcher


def _in_system(load: Load, ctx: Any) -> float | None:
    """Return requests that wait or are served: what the metrics say, else Serve's own mean."""
    if load.in_system is not None:
        return load.in_system
    number = ctx.total_num_requests
    return float(number) if isinstance(number, int | float) and number >= 0 else None


def _maker(options: Options, app: str, deployment: str) -> Callable[[], SloSource]:
    def make() -> SloSource:
        clock = SystemClock()
        if options.prometheus_url:
            return PrometheusQuery(
                _NAME,
                options.prometheus_url,
                options.query,
                options.slo,
                clock,
                unit="ms" if options.unit == "ms" else "s",
                token=_variable(options.token_env),
                basic=_variable(options.basic_env),
            )
        ask = Ask(app, options.slo, deployment, is_processing=options.measure == "processing")
        return ServeMetrics(_endpoints, {_NAME: ask}, clock)

    return make


def _variable(name: str) -> str:
    if name and not os.environ.get(name):  # noqa: TID251  # inside Serve there are no settings
        raise ValueError(f"the variable {name} is not set where Serve's controller runs")
    return os.environ[name] if name else ""  # noqa: TID251  # see above


def _endpoints() -> Sequence[str]:
    """Return the metrics page of every living node, as Ray lists them in Serve's controller."""
    import ray

    from hybrid.adapters.ray.endpoints import url_of

    return sorted(
        url_of(node["NodeManagerAddress"], node["MetricsExportPort"])
        for node in ray.nodes()
        if node["Alive"] and node["MetricsExportPort"] > 0
    )

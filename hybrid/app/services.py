"""Puts the watch over services together: sources, their threads, and what the loop asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from hybrid.adapters.metrics import Ask, PrometheusQuery, ServeMetrics, Watcher
from hybrid.adapters.ray.endpoints import MetricsEndpoints
from hybrid.control.slo import SloWatch, Watched
from hybrid.core.errors import ConfigError
from hybrid.core.ports import Clock
from hybrid.core.slo import Judgement, Load
from hybrid.settings import Settings
from hybrid.settings.services import Service


@dataclass(frozen=True)
class Services:
    """What watches services.

    Attributes:
        watch: For the loop.
        closers: End the threads and the connection to Ray.
    """

    watch: SloWatch
    closers: tuple[Callable[[], None], ...] = ()


def watch_services(
    settings: Settings,
    env: Mapping[str, str],
    clock: Clock,
    *,
    head_address: str,
    ray_token: str,
    tell: Callable[[str, str, str], None],
) -> Services:
    """Return the watch over the configured services, at work already.

    Ray Serve's figures of all services are read by one thread. Each Prometheus has one of its own:
    one that does not answer costs its own service only.

    Args:
        settings: The configuration.
        env: The controller's environment, for credentials.
        clock: Time.
        head_address: Of Ray's GCS.
        ray_token: Ray's.
        tell: See `SloWatch`.

    Raises:
        ConfigError: A variable that a service names is not set.
    """
    services = settings.services
    if not services:
        return Services(SloWatch())
    endpoints = MetricsEndpoints(head_address, ray_token)
    asks = {service.name: _ask(service) for service in services}
    serve = Watcher(
        lambda: ServeMetrics(endpoints.urls, asks, clock), {s.name: s.slo for s in services}, clock
    )
    watchers = [serve]
    watched = []
    for place, service in enumerate(services):
        source = serve
        if service.source == "prometheus":
            make = partial(_prometheus, service, clock, *_credentials(settings, place, env))
            source = Watcher(make, {service.name: service.slo}, clock)
            watchers.append(source)
        watched.append(_watched(service, source, serve))
    for watcher in watchers:
        watcher.start()
    closers = (*(watcher.stop for watcher in watchers), endpoints.close)
    return Services(SloWatch(watched, clock, tell), closers)


def _credentials(settings: Settings, place: int, env: Mapping[str, str]) -> tuple[str, str]:
    try:
        return settings.services[place].credentials(env)
    except ValueError as error:
        raise ConfigError(f"{settings.source}: services[{place}]: {error}") from error


def _ask(service: Service) -> Ask:
    return Ask(
        app=service.app_name,
        slo=service.slo,
        deployment=service.deployment or "",
        is_processing=service.measure == "processing",
        is_measured=service.source == "serve",
    )


def _prometheus(service: Service, clock: Clock, token: str, basic: str) -> PrometheusQuery:
    return PrometheusQuery(
        service.name,
        service.url or "",
        service.query or "",
        service.slo,
        clock,
        unit=service.unit,
        token=token,
        basic=basic,
    )


def _watched(service: Service, source: Watcher, serve: Watcher) -> Watched:
    def judge() -> tuple[Judgement, Load]:
        judgement, load = source.judge(service.name)
        # Prometheus is asked for the latency only; how many replicas there are, Serve says.
        return judgement, load if source is serve else serve.judge(service.name)[1]

    return Watched(
        name=service.name,
        app=service.app_name,
        deployment=service.deployment or "",
        slo=service.slo,
        shape=service.shape,
        most_count=service.max_replicas,
        borrow_count=service.borrow,
        borrow_priority=service.borrow_priority,
        judge=judge,
    )

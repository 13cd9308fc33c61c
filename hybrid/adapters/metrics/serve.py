"""Latency and load of applications in Ray Serve, from the metrics endpoint of every node."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hybrid.adapters.metrics.exposition import Sample, samples
from hybrid.adapters.metrics.fetch import Fetcher, UnreadableError
from hybrid.core.errors import HybridError
from hybrid.core.slo import Growth, Load, Reading, Seen, Slo, percentile

if TYPE_CHECKING:
    from hybrid.core.ports.clock import Clock

_AT_ONCE = 8
_END_TO_END = "ray_serve_http_request_latency_ms_bucket"
_PROCESSING = "ray_serve_deployment_processing_latency_ms_bucket"
_HEALTHY = "ray_serve_deployment_replica_healthy"
_TARGET = "ray_serve_autoscaling_target_replicas"
_QUEUED = "ray_serve_deployment_queued_queries"
_ONGOING = "ray_serve_num_ongoing_requests_at_replicas"
_NAMES = frozenset((_END_TO_END, _PROCESSING, _HEALTHY, _TARGET, _QUEUED, _ONGOING))


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted of one service.

    Attributes:
        app: Name of the application.
        deployment: Whose replicas count; `""` when the application has one deployment only.
        slo: The promise.
        is_processing: Measure the time in a replica of `deployment`, not what callers see.
        is_measured: Whether readings are wanted, and not the load only.
    """

    app: str
    slo: Slo
    deployment: str = ""
    is_processing: bool = False
    is_measured: bool = True


class _Series(NamedTuple):
    """One histogram of one process."""

    place: str
    labels: tuple[tuple[str, str], ...]


@dataclass
class _Memory:
    """What is remembered of one service between looks.

    Attributes:
        growth: Requests that were answered.
        failed: Requests that ended in an error of the service.
        places: Endpoints that tell its latencies.
        missing: Those of them that did not answer since the last reading.
    """

    growth: Growth[_Series] = field(default_factory=Growth)
    failed: Growth[_Series] = field(default_factory=Growth)
    taken_at_s: float | None = None
    places: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)

    def forget(self, is_gone: Callable[[_Series], bool]) -> None:
        """Forget series, so that only what comes after they are seen again counts."""
        for growth in (self.growth, self.failed):
            growth.forget(key for key in growth.keys if is_gone(key))


class ServeMetrics:
    """See `hybrid.core.ports.slo.SloSource`.

    Each process tells cumulative figures, anew every 10 s; a reading is what they grew by in a
    step of at least so long. What a process did before it was first seen is left out.

    Args:
        endpoints: Returns the URL of each node's metrics.
        asks: What is wanted, by service.
        clock: Time.
        timeout_s: For each endpoint.
    """

    def __init__(
        self,
        endpoints: Callable[[], Sequence[str]],
        asks: Mapping[str, Ask],
        clock: Clock,
        *,
        timeout_s: float = 3.0,
    ) -> None:
        self._endpoints = endpoints
        self._asks = dict(asks)
        self._fetcher = Fetcher(clock, timeout_s=timeout_s)
        self._memory = {name: _Memory() for name in asks}
        self._read: set[str] = set()

    def look(self, now_s: float) -> Mapping[str, Seen]:
        """See `SloSource.look`."""
        try:
            places = tuple(dict.fromkeys(self._endpoints()))
            if not places:
                raise UnreadableError("no node of the cluster tells metrics yet")
            found, problems = self._scrape(places)
        except HybridError as error:
            return {name: self._blind(name, str(error), now_s) for name in self._asks}
        seen = {name: self._see(name, found, problems, now_s) for name in self._asks}
        self._read = set(found)
        return seen

    def close(self) -> None:
        """Close all connections."""
        self._fetcher.close()

    def _scrape(
        self, places: Sequence[str]
    ) -> tuple[dict[str, tuple[Sample, ...]], dict[str, str]]:
        def read(place: str) -> tuple[Sample, ...] | str:
            try:
                body = self._fetcher.get(place)
                return tuple(samples(body.decode(errors="replace"), _NAMES))
            except UnreadableError as error:
                return str(error)

        with ThreadPoolExecutor(min(_AT_ONCE, len(places)), "slo-scrape") as pool:
            answers = dict(zip(places, pool.map(read, places), strict=True))
        found = {place: answer for place, answer in answers.items() if not isinstance(answer, str)}
        problems = {place: answer for place, answer in answers.items() if isinstance(answer, str)}
        if not found:
            raise UnreadableError(next(iter(problems.values())))
        return found, problems

    def _blind(self, name: str, why: str, now_s: float) -> Seen:
        memory, ask = self._memory[name], self._asks[name]
        memory.missing.setdefault("", why)
        return Seen(self._reading(memory, ask, "", now_s))

    def _see(
        self,
        name: str,
        found: Mapping[str, tuple[Sample, ...]],
        problems: Mapping[str, str],
        now_s: float,
    ) -> Seen:
        ask, memory = self._asks[name], self._memory[name]
        mine = {
            place: [s for s in told if s.labels.get("application") == ask.app]
            for place, told in found.items()
        }
        for place, told in mine.items():
            self._add(memory, ask, place, told)
        # A node that left the cluster is no endpoint any more, and none that is missed.
        memory.places &= found.keys() | problems.keys()
        memory.missing |= {p: why for p, why in problems.items() if p in memory.places}
        memory.forget(lambda key: key.place not in found)
        told = [sample for part in mine.values() for sample in part]
        problem = "" if told else _no_such_app(ask, found.values())
        return Seen(self._reading(memory, ask, problem, now_s), _load(ask, told))

    def _add(self, memory: _Memory, ask: Ask, place: str, told: Iterable[Sample]) -> None:
        wanted = _PROCESSING if ask.is_processing else _END_TO_END
        series: dict[_Series, dict[float, float]] = {}
        for name, labels, value in told:
            is_other = ask.is_processing and labels.get("deployment") != ask.deployment
            if name == wanted and not is_other and "le" in labels:
                key = _Series(
                    place, tuple(sorted(item for item in labels.items() if item[0] != "le"))
                )
                series.setdefault(key, {})[float(labels["le"])] = value
        for key, buckets in series.items():
            memory.places.add(place)
            is_failed = dict(key.labels).get("status_code", "").startswith("5")
            growth = memory.failed if is_failed else memory.growth
            growth.add(key, buckets, is_new=place in self._read)
        memory.forget(lambda key: key.place == place and key not in series)

    def _reading(self, memory: _Memory, ask: Ask, problem: str, now_s: float) -> Reading | None:
        """Return what a step has shown; `None` while it is not over."""
        if not ask.is_measured:
            return None
        if memory.taken_at_s is None:
            memory.taken_at_s = now_s
            memory.growth.take()
            memory.failed.take()
            return None
        span_s = now_s - memory.taken_at_s
        # Looks do not come at round moments.
        if span_s < ask.slo.step_s * 0.95:
            return None
        memory.taken_at_s = now_s
        buckets, failed = memory.growth.take(), memory.failed.take()
        missing, memory.missing = memory.missing, {}
        count, failed_count = buckets.get(math.inf, 0.0), failed.get(math.inf, 0.0)
        value_ms = percentile(buckets, ask.slo.percentile)
        if missing and (value_ms is None or value_ms <= ask.slo.target_ms):
            # What was read is a part: enough to see a breach, not enough to see that there is none.
            why = next(iter(missing.values()))
            return Reading(now_s, span_s, why=why)
        rate_rps = None if missing else count / span_s
        if value_ms is None:
            return _nothing(now_s, span_s, problem=problem, failed_count=failed_count)
        return Reading(now_s, span_s, value_ms, _failures(count, failed_count), rate_rps)


def _nothing(now_s: float, span_s: float, *, problem: str, failed_count: float) -> Reading:
    if problem:
        return Reading(now_s, span_s, why=problem)
    if failed_count:
        why = f"all {failed_count:.0f} requests of the last {span_s:.0f} s failed"
        return Reading(now_s, span_s, why=why)
    why = f"no request came in the last {span_s:.0f} s"
    return Reading(now_s, span_s, why=why, rate_rps=0.0, is_quiet=True)


def _failures(count: float, failed_count: float) -> str:
    if not failed_count:
        return ""
    return f"{failed_count:.0f} of {count + failed_count:.0f} requests failed and are left out"


def _no_such_app(ask: Ask, answers: Iterable[Sequence[Sample]]) -> str:
    apps = {s.labels.get("application", "") for told in answers for s in told} - {""}
    known = f"it reports {', '.join(sorted(apps))}" if apps else "it reports no application"
    return f"Ray Serve does not report the application {ask.app!r}; {known}"


def _load(ask: Ask, told: Sequence[Sample]) -> Load:
    deployments = {s.labels.get("deployment", "") for s in told if s.name in (_HEALTHY, _TARGET)}
    wanted = ask.deployment or (next(iter(deployments)) if len(deployments) == 1 else "")
    if not wanted:
        return Load()

    def values(name: str) -> list[float]:
        found = (s for s in told if s.name == name and s.labels.get("deployment") == wanted)
        return [s.value for s in found if math.isfinite(s.value)]

    healthy, target = values(_HEALTHY), values(_TARGET)
    queued, ongoing = values(_QUEUED), values(_ONGOING)
    return Load(
        running=sum(value > 0 for value in healthy) if healthy else None,
        target=round(max(target)) if target else None,
        in_system=max(0.0, sum(queued) + sum(ongoing)) if queued or ongoing else None,
    )

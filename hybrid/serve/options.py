"""What `slo_policy` can be told, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybrid.core.slo import Slo, SteeringParams
from hybrid.core.slo.reading import LEAST_WINDOW_S


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `SloPolicy`, which are plain values: Serve stores them as JSON."""

    target_ms: float
    percentile: float = 95.0
    window_s: float = 60.0
    min_replicas: int = 1
    max_replicas: int | None = None
    calm_s: float = 300.0
    step_s: float = 60.0
    silent_s: float | None = 600.0
    measure: str = "end_to_end"
    prometheus_url: str = ""
    query: str = ""
    unit: str = "s"
    token_env: str = ""
    basic_env: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Return them, checked.

        Raises:
            ValueError: One cannot be used; one sentence.
        """
        options = cls(**values)
        for is_wrong, words in options._rules():
            if is_wrong:
                raise ValueError(f"slo_policy: {words}")
        return options

    @property
    def slo(self) -> Slo:
        """The promise."""
        return Slo(target_ms=self.target_ms, percentile=self.percentile, window_s=self.window_s)

    @property
    def steering(self) -> SteeringParams:
        """When replicas go back."""
        return SteeringParams(calm_s=self.calm_s, step_s=self.step_s, silent_s=self.silent_s)

    def _rules(self) -> tuple[tuple[bool, str], ...]:
        most, is_asked = self.max_replicas, bool(self.prometheus_url)
        return (
            (self.target_ms <= 0, "target must be above 0, for example 800ms"),
            (not 0 < self.percentile < 100, "percentile must lie between 0 and 100"),
            (
                self.window_s < LEAST_WINDOW_S,
                "window must be 20s or more, since Ray tells its figures every 10 s",
            ),
            (self.min_replicas < 0, "min_replicas must be 0 or more"),
            (most is not None and most < max(1, self.min_replicas), "max_replicas is too small"),
            (self.measure not in ("end_to_end", "processing"), "no such measure"),
            (self.unit not in ("s", "ms"), "unit must be s or ms"),
            (is_asked != bool(self.query), "prometheus_url and query go together"),
            (
                not is_asked and bool(self.token_env or self.basic_env),
                "token_env and basic_env are for Prometheus",
            ),
            (bool(self.token_env and self.basic_env), "keep token_env or basic_env"),
        )

"""Settings of inference services: what each promises, and where that is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from hybrid.core.slo import Slo
from hybrid.settings.fields import (
    Amount,
    Count,
    EnvName,
    HttpUrl,
    Latency,
    Percentile,
    PositiveCount,
    Priority,
    ServiceName,
    Text,
    Window,
)
from hybrid.settings.section import Section


class Service(Section):
    """An application in Ray Serve and its promise: a percentile of its latency."""

    name: ServiceName = Field(description="Its name here, in `hybrid status` and in reasons.")
    app: Text | None = Field(
        None, description="Name of the application in Ray Serve; that of the service if absent."
    )
    deployment: Text | None = Field(
        None,
        description="The deployment whose replicas count; needed when the application has several.",
    )
    target_s: Latency = Field(description="The latency that must not be exceeded, such as 800ms.")
    percentile: Percentile = Field(95.0, description="Of the requests in the window.")
    window_s: Window = Field(60.0, description="Judged over this long.")
    source: Literal["serve", "prometheus"] = Field(
        "serve", description="Ray Serve's own metrics on every node, or a query to Prometheus."
    )
    measure: Literal["end_to_end", "processing"] = Field(
        "end_to_end",
        description="With source serve: what callers of the HTTP proxy wait, or only the time in a "
        "replica of `deployment`, without the queue before it.",
    )
    url: HttpUrl | None = Field(None, description="Of Prometheus, or of what speaks its HTTP API.")
    query: Text | None = Field(
        None, description="In PromQL; its answer must be one number: the latency's percentile."
    )
    unit: Literal["s", "ms"] = Field("s", description="Of the query's answer.")
    token_env: EnvName | None = Field(
        None, description="Variable of the controller that holds a bearer token for Prometheus."
    )
    basic_env: EnvName | None = Field(
        None, description="Variable of the controller that holds USER:PASSWORD for Prometheus."
    )
    max_replicas: PositiveCount = Field(
        8, description="Nodes are rented ahead for at most so many replicas."
    )
    borrow: Count = Field(
        0,
        description="On a breach, GPUs at home of batch jobs are borrowed for at most so many "
        "replicas, before anything is rented; 0: none.",
    )
    borrow_priority: Priority = Field(
        60,
        description="Jobs with a checkpoint of a lower priority than this lend their GPUs, and "
        "best-effort jobs do.",
    )
    gpus: Amount = Field(1.0, description="GPUs of one replica.")
    cpus: Amount = Field(1.0, description="CPUs of one replica; Ray's own default is 1.")

    @property
    def app_name(self) -> str:
        """The application in Ray Serve."""
        return self.app or self.name

    @property
    def slo(self) -> Slo:
        """The promise as the rest of the program knows it."""
        return Slo(
            target_ms=self.target_s * 1000, percentile=self.percentile, window_s=self.window_s
        )

    @property
    def shape(self) -> dict[str, float]:
        """What one replica needs of a node."""
        return {n: v for n, v in (("GPU", self.gpus), ("CPU", self.cpus)) if v}

    def credentials(self, env: Mapping[str, str]) -> tuple[str, str]:
        """Return the bearer token and the `user:password` for Prometheus; `""` for none.

        Args:
            env: The controller's environment.

        Raises:
            ValueError: A variable that is named is not there; one sentence.
        """
        found = []
        for name in (self.token_env, self.basic_env):
            if name is not None and not env.get(name):
                raise ValueError(
                    f"the variable {name} is not set where the controller starts; set it, or "
                    f"remove it from the service {self.name}"
                )
            found.append(env[name] if name else "")
        return found[0], found[1]

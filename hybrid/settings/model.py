"""The whole configuration of one cluster: `hybrid.yaml` after the environment had its say."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError

from hybrid.core.models import Caps
from hybrid.settings.fields import ClusterName, Extras, Text
from hybrid.settings.limits import (
    Backoff,
    Budget,
    Burst,
    Controller,
    Deadlines,
    Drain,
    Idle,
    Lease,
    Reaper,
)
from hybrid.settings.machines import Clouds, Head, Onprem, Pool, Ray
from hybrid.settings.origin import Origin
from hybrid.settings.prices import Prices
from hybrid.settings.problem import Path, Problem, SettingsError, path_text
from hybrid.settings.queue import Jobs
from hybrid.settings.section import Section
from hybrid.settings.services import Service


class Settings(Section):
    """Configuration of a cluster. Made by `hybrid.settings.load`."""

    name: ClusterName = Field(description="Names the cluster, its state folder and its tags.")
    state_dir: Text | None = Field(
        None, description="Folder of the cluster's state; $HYBRID_HOME/NAME if absent."
    )
    head: Head = Field(default_factory=Head, description="The head of the Ray cluster.")
    ray: Ray = Field(default_factory=Ray, description="Ray itself, the same on every node.")
    onprem: Onprem = Field(default_factory=Onprem, description="The machines of your own.")
    clouds: Clouds | None = Field(None, description="What may be rented; nothing if absent.")
    providers: dict[str, Extras] = Field(
        default_factory=dict, description="Account settings, by provider."
    )
    prices: Prices = Field(
        default_factory=Prices, description="Prices of your own, and exchange rates."
    )
    burst: Burst = Field(default_factory=Burst, description="When to rent, and how fast.")
    jobs: Jobs = Field(default_factory=Jobs, description="Jobs that wait for GPUs.")
    drain: Drain = Field(default_factory=Drain, description="How a rented node is emptied.")
    services: tuple[Service, ...] = Field(
        (), description="Inference services whose latency is watched."
    )
    idle: Idle = Field(default_factory=Idle, description="When a rented node is returned.")
    budget: Budget = Field(default_factory=Budget, description="Hard caps on what is rented.")
    lease: Lease = Field(default_factory=Lease, description="The dead-man switch.")
    deadlines: Deadlines = Field(
        default_factory=Deadlines, description="Longest stay in each passing state."
    )
    reaper: Reaper = Field(default_factory=Reaper, description="How lost things are judged.")
    backoff: Backoff = Field(default_factory=Backoff, description="After an offer failed.")
    controller: Controller = Field(
        default_factory=Controller, description="The process that decides."
    )

    _origin: Origin = PrivateAttr(default_factory=Origin)

    def with_origin(self, origin: Origin) -> Settings:
        """Return the same settings with a note of where their values came from."""
        copy = self.model_copy()
        copy._origin = origin  # noqa: SLF001  # its own class
        return copy

    @property
    def origin(self) -> Origin:
        """Where each value came from."""
        return self._origin

    @property
    def source(self) -> str:
        """The file they were read from, as the user named it."""
        return self._origin.source

    @property
    def caps(self) -> Caps:
        """The budget as the rest of the program knows it."""
        return self.budget.caps

    @property
    def state_path(self) -> FilePath:
        """The cluster's state folder; a relative `state_dir` is relative to the file."""
        if self.state_dir is None:
            return self._origin.home / self.name
        base = self._origin.file.parent if self._origin.file else FilePath()
        return base / FilePath(self.state_dir).expanduser()

    @property
    def is_one_machine(self) -> bool:
        """Whether every node that can ever be is a process of this machine."""
        hosts = all(host.is_local for host in self.onprem.hosts)
        return hosts and set(self.provider_names) <= {"local"}

    @property
    def provider_names(self) -> tuple[str, ...]:
        """Providers to set up: those of pools, then those with an account block only."""
        pools = self.clouds.pools if self.clouds else ()
        return tuple(dict.fromkeys([*(pool.provider for pool in pools), *self.providers]))

    def provider_raw(self, name: str) -> dict[str, Any]:
        """Return what a provider's `make` is given.

        Its account block, and `pools`: the provider's own pools in the words of the file,
        each with `rank` (0 under `any_of`, its place in the list under `ordered`) and, where
        it lacks a price, that of `prices.overrides`.
        """
        raw: dict[str, Any] = dict(self.providers.get(name, {}))
        raw["pools"] = [self._pool_raw(place, pool) for place, pool in self._pools(name)]
        return raw

    def locate(self, name: str, loc: Path) -> str:
        """Return where in the file a place in `provider_raw(name)` is.

        `("pools", 0, "stock")` becomes `clouds.any_of[2].stock`.
        """
        return path_text(self._locate(name, loc))

    def problem(self, name: str, loc: Path, text: str) -> Problem:
        """Return what is wrong at a place in `provider_raw(name)`."""
        return self._origin.problem(self._locate(name, loc), text)

    def provider_error(self, name: str, error: ValidationError) -> SettingsError:
        """Return a provider's refusal of `provider_raw(name)` in terms of the file."""
        from hybrid.settings.refusals import sentence

        return SettingsError(
            self.source,
            [
                self.problem(name, item["loc"], sentence(item))
                for item in error.errors(include_url=False)
            ],
        )

    def warnings(self) -> tuple[str, ...]:
        """Return what is allowed, but probably not meant; one sentence each."""
        from hybrid.settings.advice import advise

        return tuple(advise(self))

    def _pools(self, name: str) -> list[tuple[int, Pool]]:
        pools = self.clouds.pools if self.clouds else ()
        return [(place, pool) for place, pool in enumerate(pools) if pool.provider == name]

    def _pool_raw(self, place: int, pool: Pool) -> dict[str, Any]:
        own = self.prices.of(pool)
        return (
            pool.model_dump(mode="json", by_alias=True, exclude_unset=True)
            | {"rank": place if self.clouds and self.clouds.kind == "ordered" else 0}
            | ({"usd_per_hour": own.usd_per_hour} if own else {})
        )

    def _locate(self, name: str, loc: Path) -> Path:
        if not loc or loc[0] != "pools" or self.clouds is None:
            return ("providers", name, *loc)
        if len(loc) < 2:
            return ("clouds", self.clouds.kind)
        mine = self._pools(name)
        at = loc[1]
        place = mine[at][0] if isinstance(at, int) and at < len(mine) else at
        return ("clouds", self.clouds.kind, place, *loc[2:])

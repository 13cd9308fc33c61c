"""Configuration layers of the running cluster: checked, kept, then taken up by a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from hybrid.adapters.clock import SystemClock
from hybrid.api.layering import LayerBody, LayerView
from hybrid.app import offline
from hybrid.core.errors import ClusterError, ConfigError
from hybrid.core.views import Accepted
from hybrid.settings import Layer, Settings, dump, load
from hybrid.settings import layers as kept
from hybrid.settings.advice import unready_clouds


def places_of(settings: Settings) -> dict[str, set[str]]:
    """Return the regions in which each provider has pools: what its lists show."""
    return {
        name: {(*pool["infra"].split("/"), "")[1] for pool in settings.provider_raw(name)["pools"]}
        for name in settings.provider_names
    }


class ConfigLayers:
    """See `hybrid.api.layering.Layers`."""

    def __init__(
        self,
        settings: Settings,
        state_dir: Path,
        env: Mapping[str, str],
        *,
        missing: Callable[[Mapping[str, Collection[str]]], str],
        is_ready: Callable[[], bool],
        restart: Callable[[], None],
    ) -> None:
        """Keep the layers of a cluster.

        Args:
            settings: The configuration in force.
            state_dir: Of the cluster.
            env: The controller's environment.
            missing: Says why a controller with these places (see `places_of`) would leave what is
                rented behind; `""` when it would not.
            is_ready: Whether the cluster is up; before, a restart would take it down.
            restart: Makes the controller start again, soon.
        """
        self._settings = settings
        self._state_dir = state_dir
        self._env = env
        self._missing = missing
        self._is_ready = is_ready
        self._restart = restart
        self._lock = threading.Lock()

    def all(self) -> Sequence[LayerView]:
        """See `Layers.all`."""
        return [
            LayerView(name=layer.name, source=layer.source, content=layer.content)
            for layer in kept.stored(self._state_dir)
        ]

    def put(self, name: str, body: LayerBody) -> Accepted:
        """See `Layers.put`."""
        layer = Layer(name, body.source, body.content)
        layer.check()
        return self._change(name, layer)

    def remove(self, name: str) -> Accepted:
        """See `Layers.remove`."""
        return self._change(name, None)

    def _change(self, name: str, layer: Layer | None) -> Accepted:
        with self._lock:
            if not self._is_ready():
                raise ClusterError("the cluster still starts; ask again in a moment")
            wanted = load(
                self._settings.origin.file,
                self._env,
                layers={name: layer},
                state_dir=self._state_dir,
            )
            is_new = dump(wanted) != dump(self._settings)
            if is_new:
                self._check(wanted)
            if layer is None:
                kept.remove(self._state_dir, name)
            else:
                kept.store(self._state_dir, layer)
            self._settings = wanted
            if not is_new:
                return Accepted(message="nothing changes")
            self._restart()
            return Accepted(
                message="the controller starts again with it", facts={"is_restarting": True}
            )

    def _check(self, wanted: Settings) -> None:
        """Refuse what the next controller would refuse, while this one works."""
        offline.checked(wanted, SystemClock())
        problems = list(unready_clouds(wanted))
        if problem := self._missing(places_of(wanted)):
            problems.append(problem)
        if problems:
            raise ConfigError("; ".join(problems))

"""What the emulated clouds themselves know of a run: every machine that ever was, and when.

Each emulator calls its watcher after each request and before the answer leaves, while its cloud
stands still. So a birth is seen at its moment, and an end no later than a controller could learn
of it: what a controller may believe to be gone is gone here, and the sums are never too high.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from providers.gcp.naming import Place
from tests.e2e.accounts import CLUSTER, INSTANCE, Aws, Baidu, Cloud, Gcp
from tests.e2e.clouds import Clouds


@dataclass(frozen=True)
class Size:
    """What a machine of a pool has and costs."""

    gpus: int
    usd_per_hour: float


@dataclass
class Life:
    """A machine from its birth to its end, as its cloud had it.

    Attributes:
        intent: Our id in its tags.
        token: Of the create call that made it; `""` for a gang's at Google.
        ended_at_s: `None` while it is there.
    """

    cloud: str
    machine_id: str
    cluster_id: str
    intent: str
    token: str
    size: Size
    born_at_s: float
    ended_at_s: float | None = None

    def cost_usd(self, now_s: float) -> float:
        """Return what it has cost by then."""
        end_s = now_s if self.ended_at_s is None else self.ended_at_s
        return self.size.usd_per_hour * (end_s - self.born_at_s) / 3600.0


@dataclass
class Peak:
    """The most there ever was at one moment, over all clouds."""

    nodes: int = 0
    gpus: int = 0
    usd_per_hour: float = 0.0

    def rise(self, lives: Mapping[str, Life]) -> None:
        """Take a moment into account."""
        self.nodes = max(self.nodes, len(lives))
        self.gpus = max(self.gpus, sum(life.size.gpus for life in lives.values()))
        price = round(sum(life.size.usd_per_hour for life in lives.values()), 6)
        self.usd_per_hour = max(self.usd_per_hour, price)


@dataclass
class Chronicle:
    """Watches three clouds.

    Attributes:
        sizes: By the names of the clouds; each has one pool.
        lives: Every machine that ever was; one that came again by its old name is another.
        peak: Over all of it.
        on_change: Called at each birth, end, or change of a machine, in the cloud's own thread and
            before the answer to the request that made it leaves.
        problems: What could not be watched; then nothing here can be relied on.
    """

    clouds: Clouds
    sizes: Mapping[str, Size]
    lives: list[Life] = field(default_factory=list)
    peak: Peak = field(default_factory=Peak)
    on_change: Callable[[str], None] = lambda _: None
    problems: list[str] = field(default_factory=list)
    _alive: dict[str, Life] = field(default_factory=dict)
    _states: dict[str, dict[str, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Watch from now on."""
        for name, cloud in self.clouds.by_name.items():
            self._states[name] = {}
            watcher(cloud).watch = partial(self._look, name, cloud)

    @property
    def alive(self) -> list[str]:
        """The machines that are there."""
        return sorted(self._alive)

    @property
    def per_intent(self) -> Counter[tuple[str, str]]:
        """How many machines were ever made for each intent of each cluster."""
        return Counter((life.cluster_id, life.intent) for life in self.lives)

    @property
    def per_token(self) -> Counter[tuple[str, str]]:
        """How many machines were ever made with each token at each cloud."""
        return Counter((life.cloud, life.token) for life in self.lives if life.token)

    def spent_usd(self) -> float:
        """Return what all of them cost until now."""
        now_s = time.monotonic()
        return sum(life.cost_usd(now_s) for life in self.lives)

    def _look(self, name: str, cloud: Cloud) -> None:
        try:
            self._compare(name, cloud)
        except Exception as error:
            self.problems.append(f"{name}: {type(error).__name__}: {error}")
            raise

    def _compare(self, name: str, cloud: Cloud) -> None:
        """Compare a cloud with what it was; its lock is held."""
        now = states(cloud)
        before, self._states[name] = self._states[name], now
        if now == before:
            return
        born = [machine_id for machine_id in now if machine_id not in before]
        machines = cloud.machines() if born else {}
        with self._lock:
            now_s = time.monotonic()
            for machine_id in before.keys() - now.keys():
                self._alive.pop(f"{name} {machine_id}").ended_at_s = now_s
            for machine_id in born:
                machine = machines[machine_id]
                life = Life(
                    cloud=name,
                    machine_id=machine_id,
                    cluster_id=machine.tags[CLUSTER],
                    intent=machine.tags[INSTANCE],
                    token=machine.token,
                    size=self.sizes[name],
                    born_at_s=now_s,
                )
                self._alive[f"{name} {machine_id}"] = life
                self.lives.append(life)
            self.peak.rise(self._alive)
        self.on_change(name)


def watcher(cloud: Cloud) -> Any:
    """Return what takes a cloud's `watch`."""
    return cloud.emulator.api if isinstance(cloud, Gcp) else cast("Any", cloud).emulator


def states(cloud: Cloud) -> dict[str, str]:
    """Return what there is in a cloud until it is gone for good, with its state."""
    match cloud:
        case Aws():
            found = cloud.emulator.moto.instances("us-east-1")
            return {cloud._id(i): i.state for i in found if i.state != "terminated"}
        case Gcp():
            google = cloud.emulator.cloud
            google.settle()
            return {str(Place(*key)): i["status"] for key, i in google.instances.items()}
        case Baidu():
            baidu = cloud.emulator.cloud
            living = baidu.living()
            return {f"bj/{i}": baidu._status(baidu.instances[i]) for i in living}
        case _:
            raise TypeError(f"{cloud.name} is not known here")

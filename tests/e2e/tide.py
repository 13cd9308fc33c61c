"""Demand that comes and goes in a loop: bursts of work that only the clouds can serve."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.client import Job
from tests.e2e.chronicle import Size
from tests.e2e.clouds import CloudDeployment, Clouds

SIZES: Mapping[str, Size] = {
    "aws": Size(gpus=1, usd_per_hour=1.5),
    "gcp": Size(gpus=2, usd_per_hour=1.2),
    "baidu": Size(gpus=1, usd_per_hour=1.0),
}
"""The three pools."""

CAPS: Mapping[str, float] = {"nodes": 4, "gpus": 5, "usd_per_hour": 4.5, "usd_per_day": 200}
"""Four of Baidu's reach the first, three of Google's would pass the second, and three of AWS's
reach the third. A wave asks for more than any of them allows, as often as not."""

# Whatever the caps are, one cloud's pool alone could pass them.
_MOST_IN_POOL = 8


def settings(clouds: Clouds, **changes: Any) -> dict[str, Any]:
    """Return a configuration that rents in one pool of each cloud, with the caps."""
    pools = []
    for name, size in SIZES.items():
        cloud = clouds.by_name[name]
        pool = {**cloud.pool(cloud.zones[0]), **_OWN[name], "max_nodes": _MOST_IN_POOL}
        pools.append(pool | {"usd_per_hour": size.usd_per_hour})
    pools[-1].pop("usd_per_hour")  # Baidu's has its price in yuan
    config = clouds.config(pools)
    fast = {
        "burst": {"queue": {"max_wait": "500ms"}, "stabilisation": "500ms"},
        "idle": {"after": "1s", "min_life": "2s", "boot_life_ratio": 0},
        "backoff": {"first": "1s", "longest": "3s"},
        "controller": {"tick": "300ms"},
    }
    return {**config, "budget": dict(CAPS), **fast, **changes}


_OWN: Mapping[str, Mapping[str, Any]] = {
    "aws": {},
    "gcp": {"instance_type": "g2-standard-24", "accelerators": "L4:2", "cpus": 24},
    "baidu": {"cny_per_hour": 7.2},  # at 7.2 for a dollar
}


@dataclass
class Tide:
    """Makes bursts, on a thread of its own; no controller is needed for that.

    Attributes:
        wave_count: Bursts so far.
        task_count: Tasks of all of them.
    """

    cluster: CloudDeployment
    rng: random.Random
    high_s: tuple[float, float] = (4.0, 12.0)
    low_s: tuple[float, float] = (1.0, 9.0)
    wave_count: int = 0
    task_count: int = 0
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> Job:
        """Submit the program that works, and begin with the bursts."""
        folder = self.cluster.gate
        command = f"python surge.py {folder}"
        job = self.cluster.client.submit(command, working_dir=self.cluster.work)
        self._thread = threading.Thread(target=self._run, args=(folder,), name="tide")
        self._thread.start()
        return job

    def end(self) -> None:
        """End the last burst and let the program end."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        (self.cluster.gate / "end").touch()

    def _run(self, folder: Path) -> None:
        while not self._end.is_set():
            number = self.wave_count
            wave = self._wave()
            draft = folder / f".wave-{number}"
            draft.write_text(json.dumps(wave))
            draft.rename(folder / f"wave-{number}.json")
            self.wave_count += 1
            self.task_count += sum(place["count"] for place in wave["places"])
            self._end.wait(self.rng.uniform(*self.high_s))
            (folder / f"over-{number}").touch()
            self._end.wait(self.rng.uniform(*self.low_s))

    def _wave(self) -> dict[str, Any]:
        names: Sequence[str] = self.rng.sample(sorted(SIZES), self.rng.randint(1, len(SIZES)))
        places = [{"where": {"provider": name}, "count": self.rng.randint(1, 8)} for name in names]
        return {"places": places, "hold_s": self.rng.uniform(0.5, 6.0)}

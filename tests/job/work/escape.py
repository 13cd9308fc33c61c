"""Tries to start work outside of the job's nodes in every usual way, and writes where it ran.

python escape.py RESULT ID_OF_A_NODE_OUTSIDE
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

import hybrid


def here() -> str:
    return str(ray.get_runtime_context().get_node_id())


def three() -> list[str]:
    return list(ray.get([where.options(scheduling_strategy="SPREAD").remote() for _ in range(3)]))


def deep() -> list[str]:
    return list(ray.get(nested.remote()))


class Member:
    def where(self) -> str:
        return here()

    def children(self) -> list[str]:
        return list(ray.get(deeper.remote()))


where: Any = ray.remote(here)
nested: Any = ray.remote(num_cpus=0)(three)
deeper: Any = ray.remote(num_cpus=0)(deep)
Actor: Any = ray.remote(num_cpus=0)(Member)


def in_own_group() -> list[str]:
    group = placement_group([{"CPU": 1}, {"CPU": 1}], strategy="SPREAD")
    ray.get(group.ready())
    strategies = [PlacementGroupSchedulingStrategy(group, index) for index in range(2)]
    found = [ray.get(where.options(scheduling_strategy=one).remote()) for one in strategies]
    remove_placement_group(group)
    return found


def ways(outside: str) -> dict[str, Callable[[], list[str]]]:
    actor = Actor.remote()
    to_node = NodeAffinitySchedulingStrategy(outside, soft=False)
    to_label = NodeLabelSchedulingStrategy(hard={"site": In("cloud")})
    kept = Actor.options(lifetime="detached", name="kept")
    return {
        "driver": lambda: [here()],
        "task": lambda: ray.get([where.remote() for _ in range(6)]),
        "nested": lambda: ray.get(deeper.remote()),
        "actor": lambda: [ray.get(actor.where.remote())],
        "children of an actor": lambda: ray.get(actor.children.remote()),
        "detached actor": lambda: [ray.get(kept.remote().where.remote())],
        "SPREAD": three,  # what Ray Data asks for
        "DEFAULT": lambda: ray.get(
            [where.options(scheduling_strategy="DEFAULT").remote() for _ in range(6)]
        ),
        "node": lambda: [ray.get(where.options(scheduling_strategy=to_node).remote())],
        "node's label": lambda: [ray.get(where.options(scheduling_strategy=to_label).remote())],
        "label": lambda: [ray.get(where.options(label_selector={"site": "cloud"}).remote())],
        "actor with a label": lambda: [
            ray.get(Actor.options(label_selector={"site": "cloud"}).remote().where.remote())
        ],
        "no group": lambda: [ray.get(where.options(placement_group=None).remote())],
        "group of its own": in_own_group,
    }


def main(result: Path, outside: str) -> None:
    ray.init()
    found: dict[str, Any] = {}
    for name, way in ways(outside).items():
        try:
            found[name] = way()
        except Exception as error:  # noqa: BLE001  # to be told, whatever it is
            found[name] = f"{type(error).__name__}: {error}"[:300]
        result.write_text(json.dumps(found))
    found["bundles"] = len(hybrid.gang().bundle_specs)
    found["main thread"] = threading.current_thread() is threading.main_thread()
    result.write_text(json.dumps(found))
    sys.stdout.write("printed by the driver\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

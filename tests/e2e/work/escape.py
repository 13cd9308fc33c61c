"""Tries to start work outside of the job's nodes in every usual way, and tells where it ran."""

from __future__ import annotations

import json
from typing import Any

import ray

import hybrid


def here() -> str:
    return str(ray.get_runtime_context().get_node_id())


def three() -> list[str]:
    return list(ray.get([where.remote() for _ in range(3)]))


class Member:
    def where(self) -> str:
        return here()

    def child(self) -> str:
        return str(ray.get(where.remote()))


where: Any = ray.remote(here)
nested: Any = ray.remote(three)
Actor: Any = ray.remote(num_cpus=0)(Member)


def main() -> None:
    ray.init()
    actor = Actor.remote()
    found = {
        "driver": [ray.get_runtime_context().get_node_id()],
        "task": ray.get([where.remote() for _ in range(6)]),
        "nested": ray.get(nested.remote()),
        "actor": [ray.get(actor.where.remote())],
        "child of an actor": [ray.get(actor.child.remote())],
        "another strategy": ray.get(
            [where.options(scheduling_strategy="SPREAD").remote() for _ in range(6)]
        ),
    }
    print("RAN", json.dumps(found), flush=True)
    print("BUNDLES", len(hybrid.gang().bundle_specs), flush=True)


if __name__ == "__main__":
    main()

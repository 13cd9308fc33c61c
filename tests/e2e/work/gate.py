"""Work for the end-to-end tests: tasks that start, say so in a file, and wait for a gate.

    python gate.py FOLDER --count 3 --gpus 2 --where home_first

A test sees in FOLDER which tasks run and where (`started-<task>-<try>.json`), and lets all of
them end by making the file `open`. So nothing depends on how fast the machine is.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

import hybrid


def hold(folder: str, number: int) -> str:
    """Say that the task runs, wait for the gate, and return the site it ran on."""
    labels = ray.get_runtime_context().get_node_labels()
    facts = {
        "task": number,
        "pid": os.getpid(),
        "hostname": socket.gethostname(),
        "site": labels["site"],
        "instance_id": os.environ.get("RAY_CLOUD_INSTANCE_ID", ""),
    }
    name = f"started-{number}-{uuid.uuid4().hex[:6]}.json"
    draft = Path(folder, f".{name}")
    draft.write_text(json.dumps(facts))
    draft.rename(Path(folder, name))
    while not Path(folder, "open").exists():
        time.sleep(0.05)
    return str(labels["site"])


def placement(where: str) -> dict[str, Any]:
    """Return Ray's options for a place: `any`, `home_first`, or labels such as `site=cloud`."""
    if where == "any":
        return {}
    if where == "home_first":
        return hybrid.prefer_onprem()
    return {"label_selector": dict([where.split("=", 1)])}


def gang(place: dict[str, Any], count: int, gpus: float) -> list[dict[str, Any]]:
    """Return Ray's options for tasks that run at one moment on as many nodes, or not at all."""
    group = placement_group(
        [{"GPU": gpus}] * count,
        strategy="STRICT_SPREAD",
        bundle_label_selector=[place["label_selector"]] * count,
    )
    return [
        {"scheduling_strategy": PlacementGroupSchedulingStrategy(group, number)}
        for number in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--gpus", type=float, default=2)
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--gang", default="", help="a place where the tasks run as a gang")
    options = parser.parse_args()
    ray.init(log_to_driver=False)
    task = ray.remote(num_cpus=0, num_gpus=options.gpus, max_retries=3)(hold)
    places = options.where or ([] if options.gang else ["any"])
    tasks = [
        task.options(**placement(place)).remote(options.folder, number)
        for place in places
        for number in range(options.count)
    ]
    if options.gang:
        for number, where in enumerate(gang(placement(options.gang), 2, options.gpus)):
            tasks.append(task.options(**where).remote(options.folder, number))
    print("ran", *sorted(ray.get(tasks)), flush=True)


if __name__ == "__main__":
    main()

"""Work that comes and goes for the end-to-end tests, whoever controls the cluster meanwhile.

    python surge.py FOLDER

A test writes waves to FOLDER (`wave-<number>.json`: places, how many tasks at each, and how long a
task works) and ends one by making `over-<number>`: then its tasks end, and those that still wait
are taken back. The file `end` ends the program when all waves are over.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import ray


def work(folder: str, number: int, hold_s: float) -> None:
    """Hold the GPU for a while, or until the wave is over."""
    end_s = time.monotonic() + hold_s
    while time.monotonic() < end_s and not Path(folder, f"over-{number}").exists():
        time.sleep(0.1)


def begin(folder: Path, number: int) -> list[Any]:
    """Submit a wave."""
    wave = json.loads((folder / f"wave-{number}.json").read_text())
    # However often its machine is lost, a task runs again.
    task = ray.remote(num_cpus=0, num_gpus=1, max_retries=-1)(work)
    return [
        task.options(label_selector=place["where"]).remote(str(folder), number, wave["hold_s"])
        for place in wave["places"]
        for _ in range(place["count"])
    ]


def settle(tasks: list[Any]) -> int:
    """Take back what still waits; return how many have run."""
    done_count = 0
    for task in tasks:
        ready, _ = ray.wait([task], timeout=0)
        if not ready:
            ray.cancel(task)
    for task in tasks:
        try:
            ray.get(task)
            done_count += 1
        except (ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError):
            continue
    return done_count


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    ray.init(log_to_driver=False)
    waves: dict[int, list[Any]] = {}
    next_number, done_count = 0, 0
    while waves or not (folder / "end").exists():
        while (folder / f"wave-{next_number}.json").exists():
            waves[next_number] = begin(folder, next_number)
            next_number += 1
        for number in [n for n in waves if (folder / f"over-{n}").exists()]:
            time.sleep(0.3)  # those that run see it themselves
            done_count += settle(waves.pop(number))
        time.sleep(0.1)
    print("ran", done_count, flush=True)


if __name__ == "__main__":
    main()

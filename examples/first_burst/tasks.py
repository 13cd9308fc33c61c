"""The work of the first burst: more one-GPU tasks than the on-prem nodes can hold.

Run by Ray as a job's driver; see run.py beside it.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import ray

import hybrid


@ray.remote(num_gpus=1, num_cpus=0, max_retries=3, **hybrid.prefer_onprem())
def train(step: int, seconds: float) -> tuple[int, str]:
    """Pretend to train for a while on one (logical) GPU, and say where it ran."""
    time.sleep(seconds)
    labels = ray.get_runtime_context().get_node_labels()
    return step, labels.get("site", "unknown")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    ray.init(log_to_driver=False)
    started_s = time.monotonic()
    pending = [train.remote(step, options.seconds) for step in range(options.count)]
    where: Counter[str] = Counter()
    while pending:
        done, pending = ray.wait(pending)
        for step, site in ray.get(done):
            where[site] += 1
            print(f"{time.monotonic() - started_s:5.0f} s  task {step:2d} ran {site}", flush=True)
    print(f"ran on-prem: {where['onprem']}, ran in the cloud: {where['cloud']}", flush=True)


if __name__ == "__main__":
    main()

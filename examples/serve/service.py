"""A service whose replicas answer one request at a time, with a promise about latency.

Run by Ray as a job's driver; see run.py beside it. Serve goes on when the driver has ended.
"""

from __future__ import annotations

import asyncio
import sys

import ray
from ray import serve

import hybrid
from hybrid.serve import slo_policy


@serve.deployment(
    # A few may wait in the replica, so that its GPU need not wait for the next one.
    max_ongoing_requests=4,
    # A GPU at home if one is free, else a rented one.
    ray_actor_options={"num_cpus": 0, "num_gpus": 1, **hybrid.prefer_onprem()},
    autoscaling_config={
        "min_replicas": 1,
        "max_replicas": 3,
        # The policy has its own patience; Serve's comes on top of it.
        "upscale_delay_s": 0,
        "downscale_delay_s": 0,
        "policy": slo_policy("500ms", window="20s", calm="10s", step="2s"),
    },
)
class Model:
    """Stands for a model: each answer takes a fifth of a second of its GPU."""

    def __init__(self) -> None:
        self._gpu = asyncio.Lock()

    async def __call__(self) -> str:
        """Say where the answer comes from."""
        async with self._gpu:
            await asyncio.sleep(0.2)
        return ray.get_runtime_context().get_node_labels().get("site", "unknown")


if __name__ == "__main__":
    ray.init(log_to_driver=False)
    # One way in, on the head: that node is never drained.
    serve.start(
        http_options={"host": "127.0.0.1", "port": int(sys.argv[1]), "location": "HeadOnly"}
    )
    serve.run(Model.bind(), name="chat", route_prefix="/")

"""A service for the end-to-end tests: each replica answers one request at a time.

    python service.py --port 8123 --seconds 0.2

Deploys it with the policy that keeps its promise, and ends; Serve goes on without its driver.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import ray
from ray import serve

import hybrid
from hybrid.serve import slo_policy


@serve.deployment
class Model:
    """Takes a fixed time for each request, like a model on its GPU."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._gpu = asyncio.Lock()

    async def __call__(self) -> str:
        """Answer."""
        async with self._gpu:
            await asyncio.sleep(self._seconds)
        return str(ray.get_runtime_context().get_node_labels().get("site", "unknown"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--target", default="500ms")
    options = parser.parse_args()
    ray.init(log_to_driver=False)
    http = {"host": "127.0.0.1", "port": options.port, "location": "HeadOnly"}
    serve.start(http_options=http)
    deployment: Any = Model  # what the decorator made of it
    model = deployment.options(
        max_ongoing_requests=4,
        ray_actor_options={"num_cpus": 0, "num_gpus": 1, **hybrid.prefer_onprem()},
        autoscaling_config={
            "min_replicas": 1,
            "max_replicas": 3,
            "upscale_delay_s": 0,
            "downscale_delay_s": 0,
            "policy": slo_policy(options.target, window="20s", calm="5s", step="1s"),
        },
    )
    serve.run(model.bind(options.seconds), name="chat", route_prefix="/")


if __name__ == "__main__":
    main()

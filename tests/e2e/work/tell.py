"""Tells what a job's driver and its tasks see."""

from __future__ import annotations

import json
import os
import sys

import ray
from greeting import WORDS  # type: ignore[import-not-found]  # it is in the folder of the job


def look() -> dict[str, str]:
    """Return what this process sees."""
    return {
        "python": sys.prefix,
        "greeting": WORDS,
        "env": os.environ.get("E2E_WORD", ""),
        "token": os.environ.get("HYBRID_TOKEN", ""),
    }


def main() -> None:
    ray.init(log_to_driver=False)
    seen = {"driver": look(), "task": ray.get(ray.remote(look).remote())}
    print("SAW", json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()

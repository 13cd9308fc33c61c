"""Submits with Ray's own client what comes in, a JSON line each; for `queue`.

    python -m scripts.bench_parts.raysubmit http://DASHBOARD

A process of its own, because Ray reads how to authenticate once, when it is first imported.
"""

from __future__ import annotations

import json
import sys

from ray.job_submission import JobSubmissionClient


def main(url: str) -> None:
    """Answer each line with the id of a job."""
    client = JobSubmissionClient(url)
    print("ready", flush=True)
    for line in sys.stdin:
        print(client.submit_job(**json.loads(line)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

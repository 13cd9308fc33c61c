"""A training goes out while home is full, and comes home with its progress kept.

Needs a running cluster: `hybrid up`. Then: `python examples/train/run.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import hybrid


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--gpus", type=int, default=2, help="of home, which other work takes first")
    options = parser.parse_args()
    client = hybrid.Client()
    other = client.submit("sleep 3600", gpus=options.gpus, name="other-work")
    print(f"{other.id} takes the GPUs at home")
    job = client.submit(
        f"python train.py --steps {options.steps}",
        working_dir=Path(__file__).parent,
        gpus=options.gpus,
        name="train",
        checkpoint=hybrid.Checkpoint(save_s=2, load_s=2),
    )
    print(f"{job.id} trains; nothing at home is free for it")
    try:
        watch(client, job, other)
    finally:
        if not other.status().is_ended:
            other.cancel()
    print("--- what the training printed")
    print(job.logs().rstrip())
    return 0 if job.status().value == "succeeded" else 1


def watch(client: hybrid.Client, job: hybrid.Job, other: hybrid.Job) -> None:
    """Print what happens to the training; free home once it works in the cloud."""
    started_s, seq, before = time.monotonic(), 0, ""
    while not job.status().is_ended:
        page = client.events(subject=job.id, after=seq)
        seq = page.next_seq
        for event in page.events:
            words = event.message or event.kind.replace("_", " ")
            print(f"{time.monotonic() - started_s:5.0f} s  {event.kind:20s} {words}", flush=True)
        site = site_of(client, job)
        if site and site != before:
            print(f"{time.monotonic() - started_s:5.0f} s  it runs: {site}", flush=True)
            before = site
        if site == "cloud" and not other.status().is_ended:
            print(f"{time.monotonic() - started_s:5.0f} s  home becomes free", flush=True)
            other.cancel()
        time.sleep(1.0)


def site_of(client: hybrid.Client, job: hybrid.Job) -> str:
    """Return where a job runs now; `""` while it does not."""
    row = job.details()
    if row.state.value != "running" or not row.slots:
        return ""
    sites = {node.node_id: node.site for node in client.nodes().nodes}
    return sites.get(row.slots[0].node_id, "")


if __name__ == "__main__":
    sys.exit(main())

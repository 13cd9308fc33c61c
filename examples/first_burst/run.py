"""Submit more GPU tasks than home can hold, and watch the cluster burst and come home.

Needs a running cluster: `hybrid up`. Then: `python examples/first_burst/run.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import hybrid

SHOWN = {
    "instance_requested": "rent",
    "instance_booting": "boot",
    "instance_running": "join",
    "instance_draining": "drain",
    "instance_terminating": "return",
    "instance_terminated": "gone",
    "instance_failed": "refused",
    "job_running": "job",
    "job_succeeded": "job",
    "job_failed": "job",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=24, help="tasks, one GPU each")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of one task")
    options = parser.parse_args()
    client = hybrid.Client()
    seq = client.events(limit=1).next_seq
    job = client.submit(
        f"python tasks.py --count {options.count} --seconds {options.seconds}",
        working_dir=Path(__file__).parent,
        name="first-burst",
    )
    print(f"submitted job {job.id}: {options.count} tasks of {options.seconds:g} s, 1 GPU each")
    try:
        watch(client, job, seq)
    except KeyboardInterrupt:
        print(f"\n{job.id} goes on. hybrid logs -f {job.id}, or hybrid cancel {job.id}")
        return 130
    print("--- what the job printed")
    print(job.logs().rstrip())
    return 0 if job.status().value == "succeeded" else 1


def watch(client: hybrid.Client, job: hybrid.Job, seq: int) -> None:
    """Print what happens until the job has ended and everything rented is returned."""
    started_s = time.monotonic()
    before = ""
    while True:
        page = client.events(after=seq)
        seq = page.next_seq
        for event in page.events:
            if event.kind in SHOWN:
                at_s = time.monotonic() - started_s
                words = event.message or event.kind.replace("_", " ")
                print(f"{at_s:5.0f} s  {SHOWN[event.kind]:7s} {event.subject}  {words}")
        status = client.status()
        used = {"onprem": 0.0, "cloud": 0.0}
        for node in status.nodes:
            used[node.site] = used.get(node.site, 0.0) + (node.gpus_used or 0.0)
        waiting = sum(demand.count for demand in status.demand)
        tasks = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
        line = (
            f"GPUs working: {used['onprem']:g} on-prem, {used['cloud']:g} cloud; "
            f"{tasks}; ${status.budget.now.usd_per_hour:.2f}/h"
        )
        if line != before:
            print(f"{time.monotonic() - started_s:5.0f} s          {line}", flush=True)
            before = line
        is_over = job.status().is_ended and not status.instances
        if is_over:
            return
        time.sleep(1.0)


if __name__ == "__main__":
    sys.exit(main())

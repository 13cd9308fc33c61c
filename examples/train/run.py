"""A training that goes out to a cloud and comes home with its progress: about two minutes.

    python examples/train/run.py

Starts a cluster of its own from hybrid.yaml beside it, and takes it down at the end. Nothing is
rented for money: the cloud is pretended.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hybrid

HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).parent / "hybrid")
LONGEST_S = 300.0
SHOWN = {
    "instance_requested": "rent",
    "instance_running": "join",
    "instance_draining": "drain",
    "instance_terminated": "gone",
    "job_move_asked": "ask",
    "job_saved": "saved",
}


def main() -> int:
    config = str(HERE / "hybrid.yaml")
    subprocess.run([COMMAND, "up", config, "--yes"], check=True)
    try:
        return show(hybrid.Client(cluster="train"))
    finally:
        subprocess.run([COMMAND, "down", config, "--yes"], check=True)


def show(client: hybrid.Client) -> int:
    """Fill home, submit a training, free home, and tell what happens."""
    told = Telling(client)
    told.say("--- fill home: a job that holds both GPUs and cannot be moved")
    other = client.submit("sleep 600", gpus=2, name="other")
    told.until(lambda: told.site(other) == "onprem")

    told.say("--- submit the training: home is full, so a node is rented")
    quick = hybrid.Checkpoint(save_s=2.0, load_s=2.0)
    job = client.submit(
        f"{sys.executable} train.py --steps 600 --seconds 0.1",
        working_dir=HERE,
        gpus=2,
        name="training",
        checkpoint=quick,
    )
    told.until(lambda: told.site(job) == "cloud" and "step 100" in job.logs())

    told.say("--- home becomes free: the training saves, stops, and goes on at home")
    other.cancel()
    told.until(lambda: told.site(job) == "onprem")
    told.until(lambda: job.status().is_ended and not client.status().instances)
    told.say("--- what the training printed")
    print(job.logs().rstrip())
    return 0 if job.status().value == "succeeded" else 1


class Telling:
    """Prints what happens."""

    def __init__(self, client: hybrid.Client) -> None:
        self._client = client
        self._seq = client.events(limit=1).next_seq
        self._started_s = time.monotonic()
        self._line = ""

    def say(self, words: str) -> None:
        """Print with the time."""
        print(f"{time.monotonic() - self._started_s:5.0f} s  {words}", flush=True)

    def site(self, job: hybrid.Job) -> str:
        """Return where a job runs: `onprem`, `cloud`, or `""`."""
        row = job.details()
        sites = {node.node_id: node.site for node in self._client.nodes().nodes}
        is_there = row.state.value == "running" and row.slots
        return sites.get(row.slots[0].node_id, "") if is_there else ""

    def until(self, is_so: Callable[[], bool]) -> None:
        """Tell until it is so."""
        limit_s = time.monotonic() + LONGEST_S
        while not self._look() and not is_so():
            if time.monotonic() > limit_s:
                raise TimeoutError(f"it has not come about within {LONGEST_S:.0f} s")
            time.sleep(0.5)
        self._look()

    def _look(self) -> None:
        page = self._client.events(after=self._seq)
        self._seq = page.next_seq
        for event in page.events:
            if event.kind in SHOWN:
                words = event.message or event.kind.replace("_", " ")
                self.say(f"{SHOWN[event.kind]:6s} {event.subject}  {words}")
        rows = self._client.jobs(live=True).jobs
        line = ", ".join(f"{row.spec.name} {state(row)}" for row in rows)
        if line != self._line:
            self._line = line
            self.say(f"       {line or 'no jobs'}")


def state(row: Any) -> str:
    """Return the state that `hybrid jobs` shows."""
    if row.stop is not None:
        return "stopping" if row.stop.is_saved else "saving"
    if row.state.value == "queued" and row.started_at_s is not None:
        return "suspended"
    return str(row.state.value)


if __name__ == "__main__":
    sys.exit(main())

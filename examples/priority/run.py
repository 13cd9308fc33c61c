"""Who gets the place: priority, and best-effort work that fills what nobody wants. Two minutes.

    python examples/priority/run.py

Starts a cluster of its own from hybrid.yaml beside it, with two GPUs and no cloud, and takes it
down at the end.
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


def main() -> int:
    config = str(HERE / "hybrid.yaml")
    subprocess.run([COMMAND, "up", config, "--yes"], check=True)
    try:
        return show(hybrid.Client(cluster="priority"))
    finally:
        subprocess.run([COMMAND, "down", config, "--yes"], check=True)


def show(client: hybrid.Client) -> int:
    """Submit four jobs for the same two GPUs, and tell who has them."""
    told = Telling(client)
    told.say("--- best-effort work takes the idle GPUs; it does not save")
    filler = told.submit("sleep 10", name="filler", job_class="best-effort")
    told.until(lambda: filler.status().value == "running")

    told.say("--- a training of priority 10: best-effort work leaves at once")
    training = told.submit(
        f"{sys.executable} train.py --steps 300 --seconds 0.1",
        working_dir=HERE.parent / "train",
        name="training",
        priority=10,
        checkpoint=hybrid.Checkpoint(save_s=2.0, load_s=2.0),
    )
    told.until(lambda: "begins" in training.logs())

    told.say("--- an urgent job, priority 90, and a normal one, 50: the training saves, then goes")
    urgent = told.submit("sleep 3", name="urgent", priority=90)
    normal = told.submit("sleep 3", name="normal", priority=50)
    jobs = (filler, training, urgent, normal)
    told.until(lambda: all(job.status().is_ended for job in jobs))
    told.say("--- what the training printed")
    print(training.logs().rstrip())
    return 0 if all(job.status().value == "succeeded" for job in jobs) else 1


class Telling:
    """Submits jobs for both GPUs, and prints what becomes of them."""

    def __init__(self, client: hybrid.Client) -> None:
        self._client = client
        self._started_s = time.monotonic()
        self._jobs: list[hybrid.Job] = []
        self._line = ""

    def say(self, words: str) -> None:
        """Print with the time."""
        print(f"{time.monotonic() - self._started_s:5.0f} s  {words}", flush=True)

    def submit(self, command: str, **options: Any) -> hybrid.Job:
        """Submit a job that needs both GPUs."""
        self._jobs.append(self._client.submit(command, gpus=2, **options))
        return self._jobs[-1]

    def until(self, is_so: Callable[[], bool]) -> None:
        """Tell until it is so."""
        limit_s = time.monotonic() + LONGEST_S
        while True:
            rows = [job.details() for job in self._jobs]
            line = ", ".join(f"{row.spec.name} {state(row)}" for row in rows)
            if line != self._line:
                self._line = line
                self.say(f"  {line}")
            if is_so():
                return
            if time.monotonic() > limit_s:
                raise TimeoutError(f"it has not come about within {LONGEST_S:.0f} s")
            time.sleep(0.5)


def state(row: Any) -> str:
    """Return the state that `hybrid jobs` shows, shorter."""
    if row.stop is not None:
        return "stopping" if row.stop.is_saved else "saving"
    if row.state.value == "queued" and row.started_at_s is not None:
        return "suspended"
    return str(row.state.value)


if __name__ == "__main__":
    sys.exit(main())

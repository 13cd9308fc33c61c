"""A training: counts steps, saves when it is asked to, goes on from its checkpoint.

    python train.py STEPS NOTEBOOK [deaf | frail | idle] [every=N]

Each step is a line of the notebook with the attempt and the node, so that a test sees what was done
where. A `deaf` one never saves when it is asked to; a `frail` one dies in the middle of its first
such save; an `idle` one stays when it has saved, until it is stopped. With `every` it saves every
so many steps, and goes on; a deaf one does so once. What cannot be saved is said, and the work goes
on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from urllib.parse import urlparse

import hybrid

STEP_S = 0.1


def main(steps: int, notebook: Path, *, ways: set[str], every: int) -> None:
    folder = Path(urlparse(hybrid.checkpoint_url() or "").path)
    folder.mkdir(parents=True, exist_ok=True)
    start = hybrid.resume_from()
    attempt = os.environ["HYBRID_ATTEMPT"]
    done = json.loads(Path(start).read_text())["done"] if start else 0
    print(f"STARTED at step {done}, attempt {attempt}", flush=True)
    while done < steps:
        time.sleep(STEP_S)
        done += 1
        with notebook.open("a") as file:
            file.write(f"{done} {attempt} {os.environ['HYBRID_SLOTS']}\n")
        if every and done % every == 0 and ("deaf" not in ways or done == every):
            save(folder, done)
        if not hybrid.checkpoint_requested() or "deaf" in ways:
            continue
        if "frail" in ways and attempt == "1":
            (folder / f"step-{done}.json.part").write_text('{"done": ')
            os.kill(os.getpid(), signal.SIGKILL)
        if save(folder, done):
            while "idle" in ways:
                time.sleep(STEP_S)
            hybrid.checkpoint_exit()
    print(f"DONE at step {done}", flush=True)


def save(folder: Path, done: int) -> bool:
    """Save under a new name; return whether the checkpoint is complete, which is then told."""
    part, whole = folder / f"step-{done}.json.part", folder / f"step-{done}.json"
    try:
        part.write_text(json.dumps({"done": done}))
        part.rename(whole)
    except OSError as error:
        print(f"CANNOT SAVE at step {done}: {error.strerror}", flush=True)
        return False
    hybrid.checkpoint_saved(str(whole), step=done)
    print(f"SAVED at step {done}", flush=True)
    return True


if __name__ == "__main__":
    words = sys.argv[3:]
    main(
        int(sys.argv[1]),
        Path(sys.argv[2]),
        ways=set(words),
        every=next((int(w.removeprefix("every=")) for w in words if "=" in w), 0),
    )

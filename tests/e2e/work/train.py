"""A training: counts steps, saves when it is asked to, goes on from its checkpoint.

    python train.py STEPS NOTEBOOK [deaf]

Each step is a line of the notebook with the node's name, so that a test sees what was done where.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import urlparse

import hybrid

STEP_S = 0.1


def main(steps: int, notebook: Path, *, is_deaf: bool) -> None:
    folder = Path(urlparse(hybrid.checkpoint_url() or "").path)
    folder.mkdir(parents=True, exist_ok=True)
    start = hybrid.resume_from()
    done = json.loads(Path(start).read_text())["done"] if start else 0
    print(f"STARTED at step {done}, attempt {os.environ['HYBRID_ATTEMPT']}", flush=True)
    while done < steps:
        time.sleep(STEP_S)
        done += 1
        with notebook.open("a") as file:
            file.write(f"{done} {os.environ['HYBRID_SLOTS']}\n")
        if hybrid.checkpoint_requested() and not is_deaf:
            checkpoint = folder / f"step-{done}.json"
            checkpoint.write_text(json.dumps({"done": done}))
            hybrid.checkpoint_saved(str(checkpoint), step=done)
            print(f"SAVED at step {done}", flush=True)
            hybrid.checkpoint_exit()
    print(f"DONE at step {done}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), is_deaf="deaf" in sys.argv[3:])

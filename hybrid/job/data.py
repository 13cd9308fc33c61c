"""Brings a job's data onto its node before its command starts."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from hybrid.data.stage import StagingError, stage
from hybrid.job.context import ENVIRONMENT


def stage_all() -> bool:
    """Copy what `HYBRID_DATA` lists; tell the command where by `HYBRID_DATA_PATH_<n>`, from 0.

    Returns:
        Whether all of it is there; if not, the job's output says why.
    """
    listed = json.loads(ENVIRONMENT.get("HYBRID_DATA") or "[]")
    base = ENVIRONMENT.get("HYBRID_DATA_CACHE") or f"{tempfile.gettempdir()}/hybrid-{os.getuid()}"
    for number, (url, sha256) in enumerate(listed):
        try:
            path = stage(url, Path(base) / "data", sha256=sha256, say=_say)
        except (StagingError, OSError) as error:
            print(f"hybrid: {error}", file=sys.stderr)
            return False
        os.environ[f"HYBRID_DATA_PATH_{number}"] = str(path)
    return True


def _say(line: str) -> None:
    print(line, flush=True)

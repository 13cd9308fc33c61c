"""The real traces, which are never committed: `HYBRID_TRACES`, or beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "data" / "traces"


def real_trace(name: str) -> Path:
    """Return the file of a real trace, such as `jobs/philly_jobs.csv.gz`; skip without it.

    A skip in CI too: CI has no research data.
    """
    folder = Path(os.environ.get("HYBRID_TRACES") or BESIDE)
    path = folder / name
    if not path.is_file():
        pytest.skip(f"needs {name} of HYBRID_TRACES; docs/traces.md says where to get it")
    return path

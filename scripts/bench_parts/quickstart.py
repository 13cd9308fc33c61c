"""How long the first command of a newcomer takes, with all dependencies downloaded."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from scripts.bench_parts.cluster import environment, run
from scripts.bench_parts.figures import Figure, shortened
from scripts.bench_parts.machine import ROOT

_TARGET_S = 180.0
_LIMIT_S = 1_800.0
_PREPARE = "set -euo pipefail; . scripts/lib/venv.sh"


def measure() -> list[Figure]:
    """Prepare .venv, then run scripts/quickstart."""
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as home:
        env = {**environment(Path(home)), "HYBRID_QUICKSTART_HOME": home}
        started_s = time.monotonic()
        run(["bash", "-c", _PREPARE], env, limit_s=_LIMIT_S)
        prepared_s = time.monotonic()
        printed = run([str(ROOT / "scripts" / "quickstart")], env, limit_s=_LIMIT_S)
        spent_s = time.monotonic() - prepared_s
    return [
        Figure(
            name="quickstart_s",
            what="scripts/quickstart from start to end, in a checkout whose .venv is prepared",
            value=spent_s,
            unit="s",
            target=_TARGET_S,
            details={
                "prepare_s": shortened(prepared_s - started_s),
                "with_preparation_s": shortened(spent_s + prepared_s - started_s),
                "last_line": (printed.strip().splitlines() or [""])[-1],
            },
        )
    ]

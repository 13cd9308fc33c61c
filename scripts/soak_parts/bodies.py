"""A soak in real time: a real controller, real Ray, and machines that boot, join and work.

Bursts come and go in three emulated clouds; the controller's process is looked at from outside.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.core.errors import HybridError
from scripts.soak_parts.judging import (
    SAMPLE_EVERY_S,
    Sample,
    checks,
    fd_count,
    ledger_bytes,
    own_mib,
    some,
)
from tests.bodies import have_bodies
from tests.e2e.kills import Storm, storm

_ENDED_LISTS = 500  # some minutes of them


@dataclass
class BodySoak:
    """Looks at the controller of a storm that kills nobody."""

    storm: Storm
    samples: list[Sample] = field(default_factory=list)

    def run(self, minutes: float) -> None:
        """Let bursts come and go for so long, then let everything come home."""
        began_s = time.monotonic()
        with self.storm.surging():
            while (at_s := time.monotonic() - began_s) < 60.0 * minutes:
                self._read()
                self.samples.append(self._sample(at_s))
                # What was seen is there also when it does not come to its end.
                print(json.dumps(asdict(self.samples[-1])), file=sys.stderr, flush=True)
                time.sleep(SAMPLE_EVERY_S)

    def _read(self) -> None:
        """Ask what people and dashboards ask."""
        client = self.storm.cluster.client
        questions: list[Callable[[], object]] = [
            client.status,
            client.events,
            client.instances,
            client.cost,
        ]
        with suppress(HybridError):
            random.choice(questions)()

    def _sample(self, at_s: float) -> Sample:
        cluster = self.storm.cluster
        pid = cluster.controller_pid
        count, instance_count = _counts(cluster.state_dir)
        size = ledger_bytes(cluster.state_dir)
        return Sample(
            at_s=round(at_s, 1),
            tick_count=0,
            memory_mib=own_mib(pid),
            thread_count=len(list(Path(f"/proc/{pid}/task").iterdir())),
            fd_count=fd_count(pid),
            ledger_bytes=size,
            event_count=count,
            instance_count=instance_count,
            ledger_bytes_per_event=round(size / max(1, count), 1),
            tick_ms=0.0,
        )


def _counts(state_dir: Path) -> tuple[int, int]:
    """Return how many events and instances the ledger has."""
    ledger = open_ledger(sqlite_url(state_dir / "ledger.db"))
    try:
        events = ledger.events(limit=1)
        return events[-1].seq if events else 0, len(ledger.instances())
    finally:
        ledger.close()


def document(minutes: float, seed: int) -> dict[str, object]:
    """Run, and return what was seen; `is_ok` is `None` when it was too short to tell."""
    load = [round(value, 2) for value in os.getloadavg()]
    has_bodies = have_bodies()
    with storm(seed=seed, has_bodies=has_bodies) as blown:
        # EC2 forgets what has ended after about an hour, and moto never: the lists grew and grew.
        blown.cluster.emulated.aws.emulator.controls.ended_lists = _ENDED_LISTS
        found = BodySoak(blown)
        found.run(minutes)
        problems, facts = blown.problems(), blown.facts()
    results = checks(found.samples, warm_instances=0)
    is_ok = all(check.is_ok for check in results) and not problems
    return {
        "has_bodies": has_bodies,
        "minutes": minutes,
        "load_before": load,
        "load_after": [round(value, 2) for value in os.getloadavg()],
        **facts,
        "problems": problems,
        "is_ok": is_ok if results else None,
        "checks": [check.as_json() for check in results],
        "samples": some(found.samples),
    }

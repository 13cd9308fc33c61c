"""What a controller takes when nothing happens, and whether that grows."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hybrid import Client
from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.core.models import Event
from scripts.bench_parts.cluster import LocalCluster
from scripts.bench_parts.figures import BenchError, Figure, shortened
from scripts.bench_parts.machine import Footprint

_TARGET_MB = 150.0
_REST_S = 30.0
_LOOK_S = 5.0
_STALL_S = 60.0


def measure_memory(cluster: LocalCluster) -> list[Figure]:
    """Return the controller's memory, some time after the cluster was up."""
    time.sleep(max(0.0, cluster.ready_s + _REST_S - time.monotonic()))
    found = Footprint.of(cluster.pid)
    return [
        Figure(
            name="controller_rss_mb",
            what=f"memory of the controller on the local default, {_REST_S:g} s after it was up",
            value=found.rss_mb,
            unit="MB",
            target=_TARGET_MB,
            details=found.as_json(),
        )
    ]


@dataclass(frozen=True)
class _Sample:
    at_s: float
    tick: int
    footprint: Footprint
    ledger_bytes: int
    log_bytes: int
    last_seq: int

    @classmethod
    def of(cls, cluster: LocalCluster, client: Client) -> _Sample:
        files = cluster.state_dir.glob("ledger.db*")
        return cls(
            at_s=time.monotonic(),
            tick=client.status().controller.tick_count,
            footprint=Footprint.of(cluster.pid),
            ledger_bytes=sum(path.stat().st_size for path in files),
            log_bytes=(cluster.state_dir / "controller.log").stat().st_size,
            last_seq=client.events(limit=1).next_seq,
        )


def measure_soak(cluster: LocalCluster, *, ticks: int = 200) -> list[Figure]:
    """Return what grew over some ticks in which nothing happened."""
    with cluster.client() as client:
        _settle(client)
        first = _Sample.of(cluster, client)
        last = first
        moved_s = time.monotonic()
        while last.tick < first.tick + ticks:
            time.sleep(_LOOK_S)
            before, last = last, _Sample.of(cluster, client)
            if last.tick > before.tick:
                moved_s = time.monotonic()
            elif time.monotonic() - moved_s > _STALL_S:
                raise BenchError(f"the controller made no tick for {_STALL_S:g} s")
            print(f"  tick {last.tick - first.tick} of {ticks}", file=sys.stderr)
    return [_growth(first, last), _work(first, last), _ledger_growth()]


def _work(first: _Sample, last: _Sample) -> Figure:
    spent_s = last.footprint.cpu_s - first.footprint.cpu_s
    ticks = last.tick - first.tick
    return Figure(
        name="idle_cpu_ratio",
        what="share of one processor that the controller takes over idle ticks",
        value=spent_s / (last.at_s - first.at_s),
        unit="ratio",
        details={"cpu_ms_per_tick": shortened(spent_s / ticks * 1e3), "ticks": ticks},
    )


def _growth(first: _Sample, last: _Sample) -> Figure:
    return Figure(
        name="soak_rss_growth_mb",
        what="growth of the controller's memory over idle ticks",
        value=last.footprint.rss_mb - first.footprint.rss_mb,
        unit="MB",
        details={
            "ticks": last.tick - first.tick,
            "fds_growth": last.footprint.fds - first.footprint.fds,
            "threads_growth": last.footprint.threads - first.footprint.threads,
            "private_growth_mb": round(last.footprint.private_mb - first.footprint.private_mb, 2),
            "ledger_growth_bytes": last.ledger_bytes - first.ledger_bytes,
            "log_growth_bytes": last.log_bytes - first.log_bytes,
            "events_written": last.last_seq - first.last_seq,
            "before": first.footprint.as_json(),
            "after": last.footprint.as_json(),
        },
    )


def _settle(client: Client) -> None:
    """Wait until nothing is rented and nothing waits."""
    while (view := client.status()).instances or view.demand:
        time.sleep(1.0)


def _ledger_growth(*, events: int = 2000) -> Figure:
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        return ledger_growth(Path(folder), events=events)


def ledger_growth(folder: Path, *, events: int) -> Figure:
    """Return how much a ledger grows by an event like those of an instance's life."""
    path = folder / "ledger.db"
    ledger = open_ledger(sqlite_url(path))
    try:
        ledger.acquire("bench", now_s=1.0)
        ledger.append(_event(0))
        _checkpoint(path)
        before = path.stat().st_size
        started_s = time.perf_counter()
        for number in range(events):
            ledger.append(_event(number))
        spent_s = time.perf_counter() - started_s
        _checkpoint(path)
        grown = path.stat().st_size - before
    finally:
        ledger.close()
    return Figure(
        name="ledger_bytes_per_event",
        what="growth of the SQLite ledger by one event of an instance's life",
        value=grown / events,
        unit="bytes",
        details={"events": events, "append_ms": shortened(spent_s / events * 1e3)},
    )


def _checkpoint(path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    connection.close()


def _event(number: int) -> Event:
    return Event(
        at_s=1_790_000_000.0 + number,
        epoch=1,
        kind="instance_running",
        subject=f"i-{number % 50:010x}",
        message="node joined",
        facts={
            "from": "booting",
            "to": "running",
            "because": "node_joined",
            "provider": "local",
            "offer_id": "local/gpu-4/on_demand",
        },
    )

"""A service that holds its promise about latency through a burst: one command, about three minutes.

    pip install '.[serve]'
    python examples/serve/run.py

Starts a cluster of its own from hybrid.yaml beside it, calls the service from a second process,
first calmly, then faster than one GPU can answer, and takes the cluster down at the end.
"""

from __future__ import annotations

import multiprocessing as mp
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

import hybrid

if TYPE_CHECKING:
    from hybrid.core.views import SloView

HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).parent / "hybrid")
CALM_RPS, BURST_RPS = 2.0, 8.0
LONGEST_S = 400.0
SHOWN = {
    "service_broken": "broken",
    "service_met": "kept",
    "instance_requested": "rent",
    "instance_running": "join",
    "instance_draining": "drain",
    "instance_terminated": "gone",
}


def main() -> int:
    if not find_spec("grpc_reflection"):
        print("Ray Serve is not installed here. Run: pip install '.[serve]'")
        return 2
    config = str(HERE / "hybrid.yaml")
    subprocess.run([COMMAND, "up", config, "--yes"], check=True)
    try:
        return show()
    finally:
        subprocess.run([COMMAND, "down", config, "--yes"], check=True)


def show() -> int:
    """Deploy the service, let it be called, and tell what happens."""
    client = hybrid.Client(cluster="service")
    seq = client.events(limit=1).next_seq
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    job = client.submit(f"python service.py {port}", working_dir=HERE, name="deploy")
    if job.wait().value != "succeeded":
        print(job.logs())
        return 1
    spawn = mp.get_context("spawn")
    rate, answers = spawn.Value("d", CALM_RPS), spawn.Queue()
    callers = spawn.Process(target=call, args=(f"http://127.0.0.1:{port}/", rate, answers))
    callers.start()
    told = Telling(client, seq, answers)
    try:
        print(f"--- {CALM_RPS:g} requests a second: one GPU at home is enough")
        told.until(lambda service: service.state == "met")
        print(f"--- {BURST_RPS:g} requests a second: more than one GPU can answer")
        rate.value = BURST_RPS
        told.until(lambda service: service.state == "broken")
        told.until(lambda service: service.state == "met")
        print(f"--- the promise is kept, with the burst still on; now {CALM_RPS:g} a second again")
        rate.value = CALM_RPS
        told.until(lambda _service: not client.status().instances)
    finally:
        rate.value = 0.0
        callers.join(timeout=60)
        callers.kill()
    told.hear()
    print(f"--- {told.count} requests, {told.failed_count} failed")
    return 1 if told.failed_count else 0


class Telling:
    """Prints what happens to the service, the nodes and the callers."""

    def __init__(self, client: hybrid.Client, seq: int, answers: Any) -> None:
        self.count = self.failed_count = 0
        self._client, self._seq, self._answers = client, seq, answers
        self._started_s = time.monotonic()
        self._recent: list[tuple[float, float]] = []
        self._line, self._line_at_s = "", 0.0

    def until(self, is_done: Any) -> None:
        """Tell until it is so."""
        while time.monotonic() - self._started_s < LONGEST_S:
            self.hear()
            (service,) = self._client.status().services
            self._tell(service)
            if is_done(service):
                return
            time.sleep(1.0)
        raise TimeoutError(f"it has not come about within {LONGEST_S:.0f} s")

    def hear(self) -> None:
        """Take what the callers got."""
        while True:
            try:
                at_s, took_s, is_good = self._answers.get_nowait()
            except Empty:
                return
            self.count += 1
            self.failed_count += not is_good
            self._recent = [*self._recent[-500:], (at_s, took_s)]

    def _tell(self, service: SloView) -> None:
        page = self._client.events(after=self._seq)
        self._seq = page.next_seq
        for event in page.events:
            if event.kind in SHOWN:
                words = event.message or event.kind.replace("_", " ")
                self._print(f"{SHOWN[event.kind]:7s} {event.subject}  {words}")
        measured = "?" if service.measured_ms is None else f"{service.measured_ms:.0f} ms"
        line = f"{service.state}: p95 {measured}, replicas {service.running_count or '?'}"
        now_s = time.monotonic()
        if line != self._line and now_s - self._line_at_s >= 5:
            self._line, self._line_at_s = line, now_s
            last = sorted(took for at, took in self._recent if at > time.time() - 10)
            seen = f"{last[int(0.95 * len(last))] * 1000:.0f} ms" if last else "nothing yet"
            self._print(f"        {line}; callers saw {seen} in the last 10 s")

    def _print(self, words: str) -> None:
        print(f"{time.monotonic() - self._started_s:5.0f} s  {words}", flush=True)


def call(url: str, rate: Any, answers: Any) -> None:
    """Call at a rate, whatever comes back, until the rate is 0. Runs in a process of its own."""

    def one() -> None:
        started_s = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=120) as response:
                is_good = response.status == 200
        except OSError:
            is_good = False
        answers.put((time.time(), time.monotonic() - started_s, is_good))

    threads = []
    while rate.value > 0:
        threads.append(threading.Thread(target=one, daemon=True))
        threads[-1].start()
        time.sleep(1 / max(rate.value, 0.1))
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(main())

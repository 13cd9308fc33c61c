"""How soon money is spent once it may be: from the queue's breach in Ray to the launch call."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hybrid import Client, Job
from hybrid.adapters.ray import RayCluster
from hybrid.app.translate import control_params
from hybrid.control.params import ControlParams
from hybrid.core.errors import ClusterError
from hybrid.core.models import Event
from hybrid.settings import load
from scripts.bench_parts.cluster import CONFIG, LocalCluster
from scripts.bench_parts.figures import BenchError, Figure, shortened
from scripts.bench_parts.machine import ROOT

_TARGET_TICKS = 1.0
_EXAMPLE = ROOT / "examples" / "first_burst"
_LIMIT_S = 120.0
_LOOK_S = 0.02
_OVERFLOW = 4  # tasks of one GPU each: one instance


@dataclass(frozen=True)
class Burst:
    """One burst, in instants of the wall clock.

    Attributes:
        seen_at_s: An observer, who asks Ray fifty times a second, first saw the work wait.
        asked_at_s: The launch was written down, right before the call.
        booting_at_s: The provider had answered.
        facts: Of the launch's event.
    """

    seen_at_s: float
    asked_at_s: float
    booting_at_s: float | None
    facts: Mapping[str, object]


@dataclass(frozen=True)
class Lateness:
    """How much later than allowed, in ticks.

    Attributes:
        ours: By the policy's own numbers, from the controller's first sight of the work.
        outer: By the observer, so with the controller's wait for its next look.
    """

    ours: float
    outer: float


def lateness(burst: Burst, params: ControlParams) -> Lateness:
    """Return how many ticks passed between the earliest instant and the launch call.

    The earliest instant is: work is seen, waits for `max_wait`, and the limit stays broken
    for the stabilisation.
    """
    allowed_s = params.policy.max_wait_s + params.policy.stabilisation_s
    waited_s = burst.facts.get("reason_waiting_s")
    if not isinstance(waited_s, int | float):
        raise BenchError(f"the launch's event does not say how long work waited: {burst.facts}")
    outer_s = burst.asked_at_s - burst.seen_at_s
    return Lateness(
        ours=(waited_s - allowed_s) / params.tick_s, outer=(outer_s - allowed_s) / params.tick_s
    )


def measure(cluster: LocalCluster, *, bursts: int = 3) -> list[Figure]:
    """Return how late launches are, over some real bursts, the worst of them."""
    params = control_params(load(CONFIG, cluster.env), cluster.state_dir)
    done = []
    with cluster.client() as client, _full_home(client):
        for number in range(bursts):
            done.append(_burst(client, cluster, number))
            late = lateness(done[-1], params)
            print(f"  burst {number + 1}: {late.outer:.2f} ticks late", file=sys.stderr)
            _come_home(client)
    late_all = [lateness(burst, params) for burst in done]
    details = {
        "max_wait_s": params.policy.max_wait_s,
        "stabilisation_s": params.policy.stabilisation_s,
        "tick_s": params.tick_s,
        "call_ms": [
            shortened((b.booting_at_s - b.asked_at_s) * 1e3) for b in done if b.booting_at_s
        ],
    }
    return [
        Figure(
            name="breach_to_launch_ticks",
            what=(
                "from work that waits visibly in Ray to the launch call, beyond max_wait and "
                "stabilisation; the worst burst"
            ),
            value=max(late.outer for late in late_all),
            unit="ticks",
            target=_TARGET_TICKS,
            details={"ticks": [shortened(late.outer) for late in late_all], **details},
        ),
        Figure(
            name="breach_to_launch_ticks_of_policy",
            what="the same from the controller's own first sight, by the numbers of the reason",
            value=max(late.ours for late in late_all),
            unit="ticks",
            target=_TARGET_TICKS,
            details={
                "ticks": [shortened(late.ours) for late in late_all],
                "breach_s": [burst.facts.get("reason_breach_s") for burst in done],
                "waiting_s": [burst.facts.get("reason_waiting_s") for burst in done],
            },
        ),
    ]


@contextmanager
def _full_home(client: Client) -> Iterator[None]:
    """Keep every on-prem GPU busy, so that all work that comes then waits."""
    gpus = int(sum(node.gpus_total for node in client.nodes().nodes))
    filler = _submit(client, gpus, "bench-filler")
    try:
        end_s = time.monotonic() + _LIMIT_S
        while sum(node.gpus_used or 0.0 for node in client.nodes().nodes) < gpus:
            if time.monotonic() > end_s:
                raise BenchError(f"{gpus} tasks did not fill the on-prem nodes")
            time.sleep(0.5)
        _come_home(client)
        yield
    finally:
        filler.cancel()


def _submit(client: Client, count: int, name: str) -> Job:
    command = f"python tasks.py --count {count} --seconds 3600"
    return client.submit(command, working_dir=_EXAMPLE, name=name)


def _burst(client: Client, cluster: LocalCluster, number: int) -> Burst:
    view = client.status()
    token = (cluster.state_dir / "ray_token").read_text().strip()
    observer = RayCluster(view.cluster.head_address, token)
    seq = client.events(limit=1).next_seq
    end_s = time.monotonic() + _LIMIT_S
    job = _submit(client, _OVERFLOW, f"bench-{number}")
    try:
        seen_at_s = _first_sight(observer, end_s)
        asked = _wait_for(client, seq, "instance_requested", end_s)
        booting = _wait_for(client, seq, "instance_booting", end_s)
    finally:
        observer.close()
        job.cancel()
    return Burst(seen_at_s, asked.at_s, booting.at_s, asked.facts)


def _first_sight(observer: RayCluster, end_s: float) -> float:
    while time.monotonic() < end_s:
        at_s = time.time()
        try:
            demands = observer.view().demands
        except ClusterError:
            demands = ()
        if any(demand.shape.get("GPU") for demand in demands):
            return at_s
        time.sleep(_LOOK_S)
    raise BenchError(f"the tasks were not seen to wait within {_LIMIT_S:g} s")


def _wait_for(client: Client, after: int, kind: str, end_s: float) -> Event:
    while time.monotonic() < end_s:
        found = [e for e in client.events(after=after).events if e.kind == kind]
        if found:
            return found[0]
        time.sleep(0.2)
    raise BenchError(f"no event {kind} within {_LIMIT_S:g} s")


def _come_home(client: Client) -> None:
    """Wait until nothing is rented and nothing waits."""
    end_s = time.monotonic() + _LIMIT_S
    while time.monotonic() < end_s:
        view = client.status()
        if not view.instances and not view.demand:
            return
        time.sleep(0.5)
    raise BenchError(f"the rented nodes were not returned within {_LIMIT_S:g} s")

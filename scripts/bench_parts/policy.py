"""How long the policy for jobs takes, how that grows, and how Ray's own scheduler does.

A program of its own (`python -m scripts.bench_parts.policy`), see `alone`. Ray's side is
`ResourceDemandScheduler` of the installed version, which the autoscaler asks at each of its looks;
both get the same pending requests in turns of one run, on an empty cluster with nodes of 1, 2, 4
and 8 GPUs to rent. Requests of GPUs alone have six shapes, and Ray tries each shape once; in a mix
nearly each request has its own amount of CPUs. All of it only computes, so processor time is taken:
it is the wall time of a quiet machine.
"""

from __future__ import annotations

import logging
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from hybrid.core.collector import collector_paused
from hybrid.core.models import Demand, InstanceState, Node, Reason
from hybrid.core.models.work import Checkpoint, JobView, Slot
from hybrid.core.policy.decide import decide
from hybrid.core.policy.jobs.params import PROFILES
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Launch, Plan, Snapshot
from hybrid.sim.fleet import Rented, booting, home_node, offers_of, rented_node
from hybrid.sim.params import SimParams
from hybrid.sim.simjob import units_of
from scripts.bench_parts import alone
from scripts.bench_parts.figures import Figure, shortened, timed
from tests.sim.baselines import rays_scheduler

_NOW_S = 1e6
_NODE_GPUS = 8
_CPUS_PER_GPU = 12
_TARGET_MS = {1_000: 50.0, 10_000: 250.0}
_TARGET_RATIO = {1_000: 20.0, 3_000: 100.0}
_SIZES = (100, 300, 1_000, 3_000, 10_000)
_CUTS = ((8,), (8,), (4, 4), (4, 2, 2), (4, 2, 1, 1), (2, 2, 1, 1, 1, 1), (4, 3))
_SITE = SimParams(gpus=0)
_UNITS = {gpus: units_of(gpus, _NODE_GPUS) for gpus in (1, 2, 3, 4, 8, 16)}
"""Shared by all jobs that ask for GPUs alone, as the simulator does it."""


def measure() -> list[Figure]:
    """Measure in a process of its own."""
    return alone.measure("policy")


def figures(
    sizes: Sequence[int] = _SIZES, against: Sequence[int] = (1_000, 3_000), *, runs: int = 40
) -> Iterator[Figure]:
    """Yield the figures.

    Args:
        sizes: Queued jobs, and nodes as many.
        against: Pending requests for which Ray is asked too.
        runs: Decisions of a small size; fewer of larger ones.
    """
    for size in sizes:
        yield _decide_figure(size, max(5, min(runs, runs * 1_000 // size)))
    for size in against:
        for is_mixed in (False, True):
            yield from _ratio_figures(size, is_mixed=is_mixed, turns=3)


def crowded(size: int, seed: int = 0) -> Snapshot:
    """Return a snapshot with `size` queued jobs and `size` nodes, nearly all of them full.

    Three of five nodes are at home. Two thirds of all jobs can be stopped, and have run for up to
    two days; the others, and what is queued, came within the last half hour.
    """
    draw = random.Random(seed)
    offers = offers_of(_SITE)
    whole = next(offer for offer in offers if offer.gpu_count == _NODE_GPUS)
    jobs, nodes, instances = [], [], []
    labels = {"hybrid.io/offer": whole.offer_id}
    for number in range(size):
        cut = draw.choice(_CUTS)
        node_id = f"n-{number:06d}"
        for place, gpus in enumerate(cut):
            age_s = draw.uniform(600.0, 172_800.0)
            jobs.append(_running(f"r-{number:06d}-{place}", gpus, node_id, age_s, draw))
        free = float(_NODE_GPUS - sum(cut))
        if number % 5 < 3:
            nodes.append(home_node(node_id, _NODE_GPUS, free))
            continue
        reason = Reason(code="job_waits", message="a benchmark")
        instance = booting(node_id, whole, reason, _NOW_S - 7_200).model_copy(
            update={"state": InstanceState.RUNNING, "node_id": node_id}
        )
        instances.append(instance)
        rented = Rented(instance, _NODE_GPUS, _NOW_S - 7_200)
        nodes.append(_with_id(rented_node(rented, labels, free, _NOW_S)))
    jobs += [_queued(number, draw) for number in range(size)]
    return Snapshot(
        now_s=_NOW_S,
        nodes=tuple(nodes),
        jobs=tuple(jobs),
        instances=tuple(instances),
        offers=offers,
    )


def pending(size: int, *, is_mixed: bool = False, seed: int = 0) -> list[dict[str, float]]:
    """Return so many pending requests: GPUs, and CPUs too in a mix."""
    draw = random.Random(seed)
    made = []
    for _ in range(size):
        gpus = draw.choice((1, 1, 1, 2, 3, 4, 8))
        shape = {"GPU": float(gpus)}
        if is_mixed:
            shape["CPU"] = float(draw.randint(1, _CPUS_PER_GPU * gpus))
        made.append(shape)
    return made


def empty(requests: Sequence[dict[str, float]]) -> Snapshot:
    """Return a snapshot with these requests and no node."""
    jobs = [
        _job(f"q-{number:06d}", shape, _NOW_S - 600.0, is_movable=True)
        for number, shape in enumerate(requests)
    ]
    offers = tuple(
        offer.model_copy(update={"shape": _node_shape(offer.gpu_count)})
        for offer in offers_of(_SITE)
    )
    return Snapshot(now_s=_NOW_S, jobs=tuple(jobs), offers=offers)


def _decide_figure(size: int, runs: int) -> Figure:
    snapshot, params = crowded(size), PolicyParams()
    plan = decide(snapshot, params)
    with collector_paused():  # as the controller does
        times = timed(lambda: decide(snapshot, params), runs=runs)
    ordered = sorted(times.cpu_s)
    return Figure(
        name=f"decide_jobs_{size}_p99_ms",
        what=(
            f"decide() with {size:,} queued jobs and {size:,} nodes, "
            f"{len(snapshot.jobs) - size:,} running jobs on them; 99th percentile of {runs} runs, "
            f"processor time"
        ),
        value=ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] * 1e3,
        unit="ms",
        target=_TARGET_MS.get(size),
        details={**times.details(), "actions": dict(Counter(a.kind for a in plan.actions))},
    )


def _ratio_figures(size: int, *, is_mixed: bool, turns: int) -> Iterator[Figure]:
    requests = pending(size, is_mixed=is_mixed)
    snapshot, params = empty(requests), _eager(size)
    sizes = _SITE.node_sizes
    asked = rays_scheduler.request_for(requests, {float(n): _node_shape(n) for n in sizes})
    plan = decide(snapshot, params)
    ours_s, rays_s = [], []
    rays: Counter[float] = Counter()
    for _ in range(turns):
        began_s = time.process_time()
        rays = rays_scheduler.launches_of(asked)
        between_s = time.process_time()
        with collector_paused():
            decide(snapshot, params)
        ours_s.append(time.process_time() - between_s)
        rays_s.append(between_s - began_s)
    ours = Counter(float(a.offer.gpu_count) for a in _launches(plan))
    ratio = statistics.median(rays_s) / statistics.median(ours_s)
    mix, words = ("_mix", "of GPUs and CPUs") if is_mixed else ("", "of GPUs")
    yield Figure(
        name=f"decide_to_ray_{size}{mix}_ratio",
        what=(
            f"decide() against Ray's ResourceDemandScheduler on the same {size:,} pending requests "
            f"{words} and no node, medians of {turns} turns, processor time; Ray takes "
            f"{ratio:.0f} times as long"
        ),
        value=1 / ratio,
        unit="ratio",
        target=1 / _TARGET_RATIO[size] if is_mixed and size in _TARGET_RATIO else None,
        details={
            "ours_ms": shortened(statistics.median(ours_s) * 1e3),
            "rays_ms": shortened(statistics.median(rays_s) * 1e3),
            "times_as_fast": shortened(ratio),
            "our_nodes": ours.total(),
            "rays_nodes": rays.total(),
        },
    )
    yield Figure(
        name=f"usd_to_ray_{size}{mix}_ratio",
        what=(
            f"price of the nodes for them against those of Ray; {ours.total():,} nodes of the "
            f"jobs' own sizes against {rays.total():,} mostly large ones"
        ),
        value=_gpus(ours) / _gpus(rays),
        unit="ratio",
        target=1.0,
        details={"ours": _by_size(ours), "rays": _by_size(rays)},
    )


def _eager(size: int) -> PolicyParams:
    return PolicyParams(jobs=PROFILES["fast"], launches_per_tick=size, first_wave_count=size)


def _launches(plan: Plan) -> list[Launch]:
    return [action for action in plan.actions if isinstance(action, Launch)]


def _gpus(nodes: Counter[float]) -> float:
    return sum(size * count for size, count in nodes.items())


def _by_size(nodes: Counter[float]) -> dict[str, int]:
    return {f"{size:g}": count for size, count in sorted(nodes.items())}


def _with_id(node: Node) -> Node:
    return node.model_copy(update={"instance_id": node.node_id})


def _running(job_id: str, gpus: int, node_id: str, age_s: float, draw: random.Random) -> JobView:
    job = _job(job_id, gpus, _NOW_S - age_s, is_movable=draw.random() < 0.67)
    return job.model_copy(
        update={
            "slots": (Slot(node_id, float(gpus)),),
            "useful_from_s": _NOW_S - age_s + draw.uniform(0.0, 300.0),
            "is_started": True,
        }
    )


def _queued(number: int, draw: random.Random) -> JobView:
    gpus = draw.choice((1, 1, 1, 1, 2, 4, 8, 16))
    at_s = _NOW_S - draw.uniform(0.0, 1_800.0)
    return _job(f"q-{number:06d}", gpus, at_s, is_movable=draw.random() < 0.67)


def _node_shape(gpus: int) -> dict[str, float]:
    return {"GPU": float(gpus), "CPU": float(_CPUS_PER_GPU * gpus)}


def _job(job_id: str, asked: int | dict[str, float], at_s: float, *, is_movable: bool) -> JobView:
    whole = _UNITS[asked] if isinstance(asked, int) else (Demand(shape=asked, count=1),)
    return JobView(
        job_id=job_id,
        units=whole,
        submitted_at_s=at_s,
        max_wait_s=1_800.0,
        checkpoint=Checkpoint() if is_movable else None,
    )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    sys.exit(alone.tell(figures))

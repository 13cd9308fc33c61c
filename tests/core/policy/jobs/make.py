"""Small clusters with jobs: nodes whose free GPUs follow from the jobs that run on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybrid.core.models import Demand, Instance, InstanceState, Offer, Reason
from hybrid.core.models.work import Checkpoint, JobView, Slot
from hybrid.core.policy.decide import decide
from hybrid.core.policy.jobs.params import JobParams
from hybrid.core.policy.jobs.rent import JOB_WAITS
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.plan import Action, Snapshot
from tests.core.make import NOW_S, make_instance, make_node, make_offer, make_snapshot

SAVE_S, LOAD_S = 60.0, 90.0
TRIP_S = SAVE_S + LOAD_S
MAX_WAIT_S = 1_800.0
BOOT_S = 240.0
FOR_JOBS = Reason(code=JOB_WAITS, message="a job waits")
SIZES = tuple(
    make_offer(f"x{size}", size, 3.0 * size).model_copy(update={"boot_s": BOOT_S})
    for size in (1, 2, 4, 8)
)


def job(
    name: str,
    gpus: int = 1,
    *,
    on: str | tuple[str, ...] = (),
    waited_s: float = 0.0,
    ran_s: float | None = None,
    saves: bool = True,
    **changes: Any,
) -> JobView:
    """Return a job: waiting for `waited_s`, or running `on` nodes for `ran_s` since it came.

    More than 8 GPUs are whole nodes of 8 and one part.
    """
    whole, rest = divmod(gpus, 8)
    sizes = [8] * whole + ([rest] if rest else [])
    units = [Demand(shape={"GPU": 8.0}, count=whole)] if whole else []
    units += [Demand(shape={"GPU": float(rest)}, count=1)] if rest else []
    nodes = (on,) if isinstance(on, str) else on
    age_s = waited_s if ran_s is None else ran_s
    values: dict[str, Any] = {
        "job_id": name,
        "units": tuple(units),
        "submitted_at_s": NOW_S - age_s,
        "max_wait_s": MAX_WAIT_S,
        "checkpoint": Checkpoint(save_s=SAVE_S, load_s=LOAD_S) if saves else None,
        "slots": tuple(Slot(n, float(size)) for n, size in zip(nodes, sizes, strict=bool(nodes))),
        "useful_from_s": None if ran_s is None else NOW_S - ran_s,
        "is_started": ran_s is not None,
    }
    return JobView(**{**values, **changes})


def cluster(
    *jobs: JobView,
    home: int = 1,
    node_gpus: int = 8,
    rented: Iterable[tuple[str, int]] = (),
    booting: Iterable[tuple[str, int]] = (),
    idle_s: float = 0.0,
    offers: tuple[Offer, ...] = SIZES,
    **changes: Any,
) -> Snapshot:
    """Return a snapshot: home nodes `h0`, `h1`, ..., and rented ones by (name, GPUs)."""
    used: dict[str, float] = {}
    for slot in (slot for one in jobs for slot in one.slots):
        used[slot.node_id] = used.get(slot.node_id, 0.0) + slot.gpus
    nodes = []
    instances: list[Instance] = []
    for name, gpus in [(f"h{n}", node_gpus) for n in range(home)]:
        nodes.append(make_node(name, gpus, free=gpus - used.get(name, 0.0)))
    for name, gpus in rented:
        free = gpus - used.get(name, 0.0)
        nodes.append(make_node(name, gpus, free=free, instance_id=name, idle_s=idle_s))
        instances.append(make_instance(name, offer=by_size(gpus), reason=FOR_JOBS))
    for name, gpus in booting:
        state = InstanceState.BOOTING
        instances.append(make_instance(name, state, offer=by_size(gpus), reason=FOR_JOBS))
    named = [
        node.model_copy(update={"node_id": node.node_id.removeprefix("node-")}) for node in nodes
    ]
    values: dict[str, Any] = {
        "nodes": tuple(named),
        "instances": tuple(instances),
        "jobs": jobs,
        "offers": offers,
        "boot_s_by_offer": {offer.offer_id: BOOT_S for offer in offers},
    }
    return make_snapshot(**{**values, **changes})


def by_size(gpus: int) -> Offer:
    return next(offer for offer in SIZES if offer.gpu_count == gpus)


def actions(snapshot: Snapshot, **jobs: Any) -> list[Action]:
    """Return the plan's actions under the defaults with some thresholds changed."""
    return list(decide(snapshot, PolicyParams(jobs=JobParams(**jobs))).actions)


def kinds(made: Iterable[Action]) -> list[str]:
    """Return what is done, in words as short as `move m1 home`."""
    said = []
    for action in made:
        match action.kind:
            case "launch":
                said.append(f"launch {action.offer.offer_id}")
            case "drain" | "terminate":
                said.append(f"{action.kind} {action.instance_id}")
            case "move":
                said.append(f"move {action.job_id} {action.purpose} {action.slots[0].node_id}")
            case "start":
                said.append(f"start {action.job_id} {'+'.join(s.node_id for s in action.slots)}")
            case "suspend":
                said.append(f"suspend {action.job_id}")
    return said


def plan(snapshot: Snapshot, **jobs: Any) -> list[str]:
    """Return the plan in short words."""
    return kinds(actions(snapshot, **jobs))

"""Realistic values for the fake controller: two on-prem hosts, one rented node, a queue."""

from __future__ import annotations

from hybrid.core.models import (
    Caps,
    Commitment,
    Event,
    Job,
    JobSpec,
    JobState,
    Market,
    Offer,
    Reason,
)
from hybrid.core.models.withheld import Withheld
from hybrid.core.policy.plan import Finding, Launch, Source
from hybrid.core.rests import RestView
from hybrid.core.views import (
    Alarm,
    AttemptPlace,
    AuditView,
    BudgetView,
    ClusterInfo,
    CostLine,
    CostView,
    DemandView,
    GcItem,
    GcView,
    InstanceView,
    NodeView,
    PlanView,
    TaskPlace,
)

NOW_S = 1_764_500_000.0

QUEUE_WAIT = Reason(
    code="queue_wait",
    message="12 requests of GPU:1 wait 6m, longer than the limit of 5m",
    facts={"waiting_s": 360.0, "max_wait_s": 300.0, "count": 12},
)
NO_OFFER = Reason(
    code="no_offer_fits",
    message="no node or offer has 16 GPUs; ask for less, or add an offer to clouds.any_of",
)


def offer() -> Offer:
    return Offer(
        offer_id="local/here/a/local-4/on_demand",
        provider="local",
        instance_type="local-4",
        market=Market.ON_DEMAND,
        shape={"GPU": 4.0, "CPU": 4.0},
        gpu_count=4,
        usd_per_hour=2.4,
        stock_count=1,
    )


def cluster(name: str) -> ClusterInfo:
    return ClusterInfo(
        name=name,
        cluster_id="c-5f2a9b",
        version="0.1.0",
        ray_version="2.60.0",
        python_version="3.11.9",
        head_address="127.0.0.1:6379",
        dashboard_url="http://127.0.0.1:8265",
        config_path="/srv/hybrid.yaml",
        started_at_s=NOW_S - 7_200.0,
    )


def nodes(cloud_node_count: int = 1) -> tuple[NodeView, ...]:
    """Return a head, two on-prem hosts and some rented nodes."""
    hosts = [
        NodeView(name="head", site="onprem", state="idle", cpus_total=1.0, cpus_used=0.0),
        NodeView(
            name="onprem-1",
            site="onprem",
            node_id="aa" * 28,
            state="busy",
            why="GPU in use",
            gpus_total=4.0,
            gpus_used=4.0,
            cpus_total=4.0,
            cpus_used=1.0,
            since_at_s=NOW_S - 7_100.0,
            labels={"site": "onprem"},
        ),
        NodeView(
            name="onprem-2",
            site="onprem",
            state="joining",
            why="ray start runs",
            gpus_total=4.0,
            cpus_total=4.0,
            since_at_s=NOW_S - 20.0,
        ),
    ]
    rented = [
        NodeView(
            name=f"i-{index:010x}",
            site="cloud",
            provider="local",
            node_id=f"{index:056x}",
            instance_type="local-4",
            state="idle",
            gpus_total=4.0,
            gpus_used=0.0,
            cpus_total=4.0,
            cpus_used=0.0,
            idle_s=180.0,
            usd_per_hour=2.4,
            since_at_s=NOW_S - 900.0,
        )
        for index in range(1, cloud_node_count + 1)
    ]
    return (*hosts, *rented)


def instances() -> tuple[InstanceView, ...]:
    running = InstanceView(
        instance_id="i-0000000001",
        provider="local",
        provider_id="p-1",
        offer_id=offer().offer_id,
        instance_type="local-4",
        market="on_demand",
        state="running",
        reason=QUEUE_WAIT,
        gpu_count=4,
        usd_per_hour=2.4,
        cost_usd=0.61,
        created_at_s=NOW_S - 915.0,
        joined_at_s=NOW_S - 900.0,
        state_at_s=NOW_S - 900.0,
        lease_until_s=NOW_S + 1_500.0,
        node_id=f"{1:056x}",
    )
    ended = running.model_copy(
        update={
            "instance_id": "i-0000000000",
            "state": "terminated",
            "ended_at_s": NOW_S - 3_600.0,
            "cost_usd": 1.2,
        }
    )
    return (running, ended)


def demand() -> tuple[DemandView, ...]:
    return (
        DemandView(shape={"GPU": 1.0}, count=12, sites=("onprem", "cloud"), waiting_s=360.0),
        DemandView(shape={"GPU": 16.0}, count=1, sites=("cloud",), waiting_s=None),
    )


def plan() -> PlanView:
    return PlanView(
        at_s=NOW_S - 1.0,
        summary="Bursting: 1 node rented (4 GPUs), 1 launch, because the queue waits 6m.",
        actions=(Launch(offer=offer(), reason=QUEUE_WAIT),),
        findings=(
            Finding(shape={"GPU": 1.0}, count=12, waiting_s=360.0, reason=QUEUE_WAIT),
            Finding(shape={"GPU": 16.0}, count=1, is_for_ever=True, reason=NO_OFFER),
        ),
        resting=resting(),
        withheld=withheld(),
    )


def resting() -> tuple[RestView, ...]:
    return (
        RestView(
            key="region:aws/us-east-1",
            scope="region",
            error="QuotaError",
            message="You have requested more vCPU capacity than your current limit of 0",
            failure_count=3,
            until_at_s=NOW_S + 750.0,
            is_over=False,
            offer_ids=("aws/us-east-1/a/p4d/on_demand", "aws/us-east-1/b/p4d/on_demand"),
        ),
        RestView(
            key=offer().offer_id,
            scope="offer",
            error="CapacityError",
            message="sold out",
            failure_count=1,
            until_at_s=NOW_S - 5.0,
            is_over=True,
            offer_ids=(offer().offer_id,),
        ),
    )


def withheld() -> tuple[Withheld, ...]:
    return (
        Withheld(
            offer_id="aws/us-east-1/a/p4d/spot",
            provider="aws",
            instance_type="p4d",
            market=Market.SPOT,
            reason=Reason(code="no_price", message="AWS told no spot price; write usd_per_hour"),
        ),
    )


def budget() -> BudgetView:
    return BudgetView(
        caps=Caps(node_count=2, usd_per_hour=10.0, usd_per_day=20.0),
        now=Commitment(node_count=1, gpu_count=4, usd_per_hour=2.4, day_usd=1.81, month_usd=31.5),
    )


def sources() -> tuple[Source, ...]:
    return (
        Source(name="ray", is_up=True, seen_at_s=NOW_S - 1.0),
        Source(name="ledger", is_up=True, seen_at_s=NOW_S - 1.0),
        Source(name="provider:local", is_up=False, problem="timed out", seen_at_s=NOW_S - 95.0),
    )


def alarms() -> tuple[Alarm, ...]:
    return (
        Alarm(
            code="source_down",
            subject="provider:local",
            what="provider local cannot be read for 95s; nothing of it is ended meanwhile",
            since_at_s=NOW_S - 95.0,
        ),
    )


def events() -> tuple[Event, ...]:
    """Return seven events, ten seconds apart."""
    kinds = ("controller_started", "head_started", "host_joined", "host_joined")
    rented = ("instance_requested", "launch_accepted", "node_joined")
    return tuple(
        Event(
            seq=index,
            at_s=NOW_S - 100.0 + index * 10.0,
            epoch=3,
            kind=kind,
            subject="i-0000000001" if kind in rented else "",
            message=f"{kind.replace('_', ' ')}: \u597d",
            facts={"usd_per_hour": 2.4},
        )
        for index, kind in enumerate((*kinds, *rented), start=1)
    )


def cost(since_s: float) -> CostView:
    line = CostLine(key="local", instance_count=2, gpu_hours=3.0, usd=1.81)
    return CostView(
        at_s=NOW_S,
        since_at_s=since_s,
        total_usd=1.81,
        running_usd_per_hour=2.4,
        by_provider=(line,),
        by_reason=(line.model_copy(update={"key": "queue_wait"}),),
        instances=instances(),
        budget=budget(),
        notes=("estimated from list prices and times",),
    )


def gc(is_dry_run: bool) -> GcView:
    return GcView(
        at_s=NOW_S,
        is_dry_run=is_dry_run,
        items=(
            GcItem(
                provider="local",
                provider_id="p-9",
                instance_id="i-0000000099",
                age_s=4_000.0,
                verdict="orphan",
                is_terminated=not is_dry_run,
            ),
        ),
        unreadable=(Source(name="provider:aws", is_up=False, problem="no credentials"),),
    )


def jobs() -> tuple[Job, ...]:
    spec = JobSpec(entrypoint="python train.py", name="train", gpus=1, user="ada")
    return (
        Job(
            job_id="j-running",
            spec=spec,
            state=JobState.RUNNING,
            created_at_s=NOW_S - 300.0,
            state_at_s=NOW_S - 280.0,
            started_at_s=NOW_S - 280.0,
        ),
        Job(
            job_id="j-failed",
            spec=spec.model_copy(update={"name": "\u8bad\u7ec3"}),
            state=JobState.FAILED,
            created_at_s=NOW_S - 900.0,
            state_at_s=NOW_S - 600.0,
            started_at_s=NOW_S - 880.0,
            ended_at_s=NOW_S - 600.0,
            message="exit code 1",
        ),
    )


def audit_of(job: Job) -> AuditView:
    place = AttemptPlace(
        attempt=1, at_s=NOW_S - 60, nodes=("gpu-1",), sites=("onprem",), why="on-prem GPUs are free"
    )
    tasks = (
        TaskPlace(node="gpu-1", site="onprem", kind="task", name="step", count=12),
        TaskPlace(node="i-1", site="cloud", kind="actor", name="Loader", count=1),
    )
    return AuditView(
        at_s=NOW_S,
        job_id=job.job_id,
        site=job.spec.site,
        attempts=(place,),
        tasks=tasks,
        is_complete=True,
        notes=("Tasks are those that Ray remembers.",),
    )

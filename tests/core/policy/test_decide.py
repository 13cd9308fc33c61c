"""Laws of the whole decision, over random snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hybrid.core.cost import Rental, commitment_of, rental
from hybrid.core.labels import admits_any
from hybrid.core.models import (
    Caps,
    Commitment,
    Demand,
    Gang,
    Instance,
    InstanceState,
    Node,
    NodeStatus,
    Offer,
    Spread,
)
from hybrid.core.policy.caps import leave_for_caps
from hybrid.core.policy.decide import decide
from hybrid.core.policy.market import is_coming, rented_labels
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.pieces import total
from hybrid.core.policy.plan import Drain, Finding, Host, Launch, Plan, Snapshot
from hybrid.core.policy.room import fits
from hybrid.core.ports import Mode
from tests.core.make import (
    CLOUD,
    NOT_CLOUD,
    NOW_S,
    ONPREM,
    blind,
    laws,
    make_demand,
    make_failure,
    make_gang,
    make_instance,
    make_node,
    make_offer,
    make_params,
    make_snapshot,
    rule,
)

S = InstanceState

# --- random snapshots -----------------------------------------------------------------------

ages = st.one_of(st.none(), st.sampled_from([0.0, 59.0, 299.9, 300.0, 300.1, 5_000.0]))
selectors = st.sampled_from(
    [(), (ONPREM,), (CLOUD,), (ONPREM, CLOUD), (NOT_CLOUD,), ((rule("accelerator", "A100"),),)]
)
demands = st.builds(
    lambda gpus, cpus, count, where, waiting_s: make_demand(
        gpus, count, *where, waiting_s=waiting_s, CPU=cpus
    ),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0, 7.0, 8.0, 16.0]),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.integers(1, 40),
    selectors,
    ages,
)
bundles = st.builds(
    lambda gpus, where: make_demand(gpus, 1, *where[:1]),
    st.sampled_from([1.0, 2.0, 4.0, 8.0]),
    selectors,
)
gangs = st.builds(
    lambda parts, spread, waiting_s: make_gang(*parts, spread=spread, waiting_s=waiting_s),
    st.lists(bundles, min_size=1, max_size=4),
    st.sampled_from(Spread),
    ages,
)
nodes = st.builds(
    lambda gpus, used, status: make_node(
        "h", gpus, free=max(0.0, gpus - used), status=status, idle_s=700.0, CPU=8
    ),
    st.sampled_from([0.0, 2.0, 4.0, 8.0]),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.sampled_from(NodeStatus),
)
offers = st.builds(
    lambda gpus, usd, stock, max_count, provider, accelerator, rank: make_offer(
        "o",
        gpus,
        usd,
        stock=stock,
        max_count=max_count,
        provider=provider,
        accelerator=accelerator,
        rank=rank,
        CPU=8,
    ),
    st.sampled_from([0, 1, 4, 8]),
    st.sampled_from([0.5, 1.0, 4.0, 30.0]),
    st.sampled_from([None, None, 0, 2, 50]),
    st.sampled_from([None, None, 1, 9]),
    st.sampled_from(["sim", "other"]),
    st.sampled_from(["", "A100"]),
    st.sampled_from([0, 0, 1]),
)
rented = st.builds(
    lambda state, age_s, offer, deadline_s, quarantine: make_instance(
        "i",
        state,
        age_s=age_s,
        offer=offer,
        deadline_at_s=None if deadline_s is None else NOW_S + deadline_s,
        quarantine=quarantine,
    ),
    st.sampled_from([s for s in S if s not in (S.TERMINATED, S.FAILED)]),
    st.sampled_from([10.0, 899.0, 900.0, 50_000.0]),
    offers,
    st.sampled_from([None, -1.0, 0.0, 60.0]),
    st.sampled_from(["", "", "", "a bug"]),
)
caps = st.builds(
    Caps,
    node_count=st.sampled_from([None, None, 0, 3, 12]),
    gpu_count=st.sampled_from([None, None, 7, 40]),
    usd_per_hour=st.sampled_from([None, None, 5.0, 60.0]),
    usd_per_day=st.sampled_from([None, None, 10.0, 500.0]),
    usd_per_month=st.sampled_from([None, None, 10.0, 5_000.0]),
)
modes = st.sampled_from([Mode(), Mode(), Mode(), Mode(is_out_paused=True), Mode(is_in_paused=True)])
all_params = st.builds(
    lambda pending_gpus, limit, busy_drain: make_params(
        pending_gpus=pending_gpus, launches_per_tick=limit, busy_drain=busy_drain
    ),
    st.sampled_from([None, None, 0.0, 20.0]),
    st.sampled_from([1, 3, 1_000]),
    st.sampled_from(["keep", "come_home"]),
)


def named(items: Iterable[Any], prefix: str, *fields: str) -> tuple[Any, ...]:
    """Give each item a name of its own in the given fields."""
    return tuple(
        item.model_copy(update=dict.fromkeys(fields, f"{prefix}-{n}"))
        for n, item in enumerate(items)
    )


def node_of(instance: Instance, status: NodeStatus, used: float) -> Node:
    gpus = instance.offer.shape.get("GPU", 0.0)
    return make_node(
        instance.instance_id,
        gpus,
        free=max(0.0, gpus - used),
        status=status,
        idle_s=700.0,
        instance_id=instance.instance_id,
        labels=rented_labels(instance.offer),
        CPU=8,
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    shop = named(draw(st.lists(offers, max_size=4)), "o", "offer_id", "instance_type")
    live = named(draw(st.lists(rented, max_size=5)), "i", "instance_id")
    if shop:
        live = tuple(i.model_copy(update={"offer": draw(st.sampled_from(shop))}) for i in live)
    home = named(draw(st.lists(nodes, max_size=4)), "h", "node_id", "host")
    away = tuple(
        node_of(i, draw(st.sampled_from(NodeStatus)), draw(st.sampled_from([0.0, 1.0])))
        for i in live
        if i.state in (S.RUNNING, S.DRAINING)
    )
    exit_s = PolicyParams().exit_s
    used = commitment_of([rental(i) for i in live], [], now_s=NOW_S, exit_s=exit_s)
    return make_snapshot(
        nodes=(*home, *away),
        hosts=tuple(
            Host(name=f"h-{n}", shape={"GPU": 4.0, "CPU": 8.0}, labels={"site": "onprem"})
            for n in range(draw(st.integers(0, 3)))
        ),
        demands=one_of_each(draw(st.lists(demands, max_size=4))),
        gangs=named(draw(st.lists(gangs, max_size=2)), "g", "gang_id"),
        instances=live,
        offers=shop,
        failures=tuple(
            make_failure(o.offer_id, until_s=NOW_S + draw(st.sampled_from([-1.0, 60.0])))
            for o in shop
            if draw(st.integers(0, 4)) == 0
        ),
        caps=draw(caps),
        commitment=used,
        breach_since_s=draw(st.sampled_from([None, 0.0, NOW_S - 29.0, NOW_S - 30.0])),
        blind=draw(st.sampled_from([(), (), (), (blind(),), (blind("provider:other"),)])),
        mode=draw(modes),
    )


def one_of_each(found: list[Demand]) -> tuple[Demand, ...]:
    """Keep one demand of each shape, so that findings can be told apart."""
    by_shape = {tuple(sorted(d.shape.items())): d for d in found}
    return tuple(by_shape.values())


def launches(made: Plan) -> list[Launch]:
    return [action for action in made.actions if isinstance(action, Launch)]


def drains(made: Plan) -> list[Any]:
    return [action for action in made.actions if not isinstance(action, Launch)]


many = settings(laws, max_examples=200)


# --- what every plan keeps ------------------------------------------------------------------


@given(snapshots(), all_params)
@many
def test_a_plan_never_passes_a_cap(snapshot: Snapshot, params: PolicyParams) -> None:
    bought = [action.offer for action in launches(decide(snapshot, params))]
    used, limit = snapshot.commitment, snapshot.caps
    launch_s = params.min_life_s + params.exit_s
    usd_per_hour = sum(offer.usd_per_hour for offer in bought)
    kept = used.day_exit_usd + usd_per_hour * launch_s / 3600
    rows = [
        (limit.node_count, used.node_count, len(bought)),
        (limit.gpu_count, used.gpu_count, sum(offer.gpu_count for offer in bought)),
        (limit.usd_per_hour, used.usd_per_hour, usd_per_hour),
        (limit.usd_per_day, used.day_usd + kept, usd_per_hour),
        (limit.usd_per_month, used.month_usd + kept, usd_per_hour),
    ]
    for cap, now, more in rows:
        if cap is not None and more:
            money = more if cap not in (limit.usd_per_day, limit.usd_per_month) else 0.0
            assert now + money <= cap + 1e-6


@given(snapshots(), all_params)
@many
def test_a_plan_never_passes_stock_pool_tick_or_what_is_off(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    bought = [action.offer for action in launches(decide(snapshot, params))]
    unseen = {source.name for source in snapshot.blind}
    resting = {f.key for f in snapshot.failures if f.until_s > NOW_S}

    assert len(bought) <= params.launches_per_tick
    assert not (bought and snapshot.mode.is_out_paused)
    for offer in bought:
        count = bought.count(offer)
        live = sum(i.offer.offer_id == offer.offer_id for i in snapshot.instances)
        assert offer.stock_count is None or count <= offer.stock_count
        assert offer.max_count is None or count + live <= offer.max_count
        assert f"provider:{offer.provider}" not in unseen
        assert offer.offer_id not in resting


@given(snapshots(), all_params)
@many
def test_each_launch_is_for_late_work_that_may_run_there_and_says_why(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    waiting: list[Demand | Gang] = [*snapshot.demands, *snapshot.gangs]
    late = [
        work
        for work in waiting
        if params.pending_gpus is not None or (work.waiting_s or 0.0) > params.max_wait_s
    ]
    pieces: list[Demand] = []
    for work in late:
        pieces += work.bundles if isinstance(work, Gang) else (work,)
    for action in launches(decide(snapshot, params)):
        labels = rented_labels(action.offer)
        assert any(
            fits(p.shape, action.offer.shape) and admits_any(p.selectors, labels) for p in pieces
        )
        assert action.reason.code in ("queue_wait", "queue_gpus")
        assert action.reason.facts["usd_per_hour"] == action.offer.usd_per_hour


@given(snapshots(), all_params)
@many
def test_only_what_runs_and_may_leave_is_drained_and_once(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    made = decide(snapshot, params)
    by_id = {i.instance_id: i for i in snapshot.instances}
    ids = [action.instance_id for action in drains(made)]
    assert len(ids) == len(set(ids))
    unseen = {source.name for source in snapshot.blind}
    for action in drains(made):
        instance = by_id[action.instance_id]
        is_money = action.reason.code.startswith("budget_")
        expected = S.RUNNING if isinstance(action, Drain) else S.BOOTING
        assert instance.state is expected
        assert not instance.quarantine
        assert is_money or not snapshot.mode.is_in_paused
        assert is_money or f"provider:{instance.offer.provider}" not in unseen
        assert is_money or NOW_S - instance.created_at_s >= params.min_life_s


@given(snapshots(), all_params)
@many
def test_findings_cover_everything_that_waits_exactly_once(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    findings = decide(snapshot, params).findings

    singles: dict[tuple[Any, ...], int] = {}
    for finding in findings:
        if not finding.gang_id:
            key = tuple(sorted(finding.shape.items()))
            singles[key] = singles.get(key, 0) + finding.count
    assert singles == {tuple(sorted(d.shape.items())): d.count for d in snapshot.demands}
    assert sorted(f.gang_id for f in findings if f.gang_id) == sorted(
        g.gang_id for g in snapshot.gangs
    )
    for gang in snapshot.gangs:
        assert [f.shape for f in findings if f.gang_id == gang.gang_id] == [total(gang.bundles)]


@given(snapshots(), all_params)
@many
def test_what_is_launched_and_what_is_said_to_be_launched_agree(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    made = decide(snapshot, params)

    assert bool(launches(made)) == any(f.reason.code == "launching" for f in made.findings)


@given(snapshots(), all_params)
@many
def test_words_are_whole(snapshot: Snapshot, params: PolicyParams) -> None:
    made = decide(snapshot, params)
    reasons = [action.reason for action in made.actions] + [f.reason for f in made.findings]
    for text in [made.summary, *(reason.message for reason in reasons)]:
        assert text
        assert not re.search(r"[{}]|\bnan\b|\binf\b|None|\be[+-]?\d|  ", text), text
        assert not re.search(r"\b1 (nodes|requests|instances)\b", text), text
    assert all(reason.code for reason in reasons)


@given(snapshots(), all_params, st.randoms(use_true_random=False))
@many
def test_equal_snapshots_give_equal_plans_in_any_order(
    snapshot: Snapshot, params: PolicyParams, rng: Any
) -> None:
    names = ("nodes", "hosts", "demands", "gangs", "instances", "offers", "failures", "blind")
    mixed = {name: list(getattr(snapshot, name)) for name in names}
    for items in mixed.values():
        rng.shuffle(items)
    other = snapshot.model_copy(
        update={name: tuple(items) for name, items in mixed.items()} | {"tick_id": 7}
    )

    assert decide(snapshot, params) == decide(snapshot, params) == decide(other, params)


@given(snapshots(), all_params)
@many
def test_only_a_hard_cap_acts_while_ray_is_silent(snapshot: Snapshot, params: PolicyParams) -> None:
    silent = snapshot.model_copy(update={"blind": (*snapshot.blind, blind("ray"))})

    made = decide(silent, params)

    assert made.actions == tuple(leave_for_caps(snapshot, params) or ())
    assert made.breach_since_s == snapshot.breach_since_s


@given(snapshots(), all_params)
@many
def test_work_that_may_only_run_at_home_never_launches(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    def at_home(work: Demand) -> Demand:
        return work.model_copy(update={"selectors": (ONPREM,)})

    home = snapshot.model_copy(
        update={
            "demands": tuple(at_home(d) for d in snapshot.demands),
            "gangs": tuple(
                g.model_copy(update={"bundles": tuple(at_home(b) for b in g.bundles)})
                for g in snapshot.gangs
            ),
        }
    )

    made = decide(home, params)

    assert launches(made) == []
    assert made.breach_since_s is None


def could_run(finding: Finding, work: Demand, snapshot: Snapshot) -> bool:
    """Return whether an empty node, a host, or an allowed offer could hold one request."""
    places: list[tuple[Any, Any]] = [
        (n.total, n.labels) for n in snapshot.nodes if n.status is not NodeStatus.DEAD
    ]
    there = {n.host for n in snapshot.nodes if n.status is not NodeStatus.DEAD}
    places += [(h.shape, h.labels) for h in snapshot.hosts if h.name not in there]
    places += [(o.shape, rented_labels(o)) for o in snapshot.offers if allowed(o, snapshot.caps)]
    places += [
        (i.offer.shape, rented_labels(i.offer))
        for i in snapshot.instances
        if is_coming(i, now_s=NOW_S)
    ]
    return any(fits(work.shape, s) and admits_any(work.selectors, labels) for s, labels in places)


def allowed(offer: Offer, limit: Caps) -> bool:
    params = PolicyParams()
    launch_usd = offer.usd_per_hour * (params.min_life_s + params.exit_s) / 3600
    return not (
        offer.max_count == 0
        or limit.node_count == 0
        or (limit.gpu_count is not None and offer.gpu_count > limit.gpu_count)
        or (limit.usd_per_hour is not None and offer.usd_per_hour > limit.usd_per_hour)
        or (limit.usd_per_day is not None and launch_usd > limit.usd_per_day)
        or (limit.usd_per_month is not None and launch_usd > limit.usd_per_month)
    )


@given(snapshots(), all_params)
@many
def test_for_ever_is_said_of_work_that_never_could_run_and_of_no_other(
    snapshot: Snapshot, params: PolicyParams
) -> None:
    by_shape = {tuple(sorted(d.shape.items())): d for d in snapshot.demands}
    for finding in decide(snapshot, params).findings:
        if not finding.gang_id:
            work = by_shape[tuple(sorted(finding.shape.items()))]
            if finding.is_for_ever:
                assert not could_run(finding, work, snapshot)
            elif finding.reason.code not in ("within_limit", "stabilising", "paused"):
                assert could_run(finding, work, snapshot), finding


# --- how plans follow one another -----------------------------------------------------------

late_demands = st.lists(
    st.builds(
        lambda gpus, cpus, count: make_demand(gpus, count, waiting_s=400.0, CPU=cpus),
        st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0, 8.0]),
        st.sampled_from([0.0, 1.0, 2.0]),
        st.integers(1, 30),
    ),
    min_size=1,
    max_size=4,
).map(one_of_each)
plain_offers = st.lists(
    st.builds(
        lambda gpus, usd: make_offer("o", gpus, usd, CPU=4 * gpus),
        st.sampled_from([1, 2, 4, 8]),
        st.sampled_from([0.9, 1.0, 1.1]),
    ),
    max_size=3,
).map(
    lambda found: (
        make_offer("big", 8, 9.0, CPU=32),
        *(
            o.model_copy(update={"usd_per_hour": o.usd_per_hour * o.gpu_count})
            for o in named(found, "o", "offer_id", "instance_type")
        ),
    )
)
PLENTY = make_params(max_wait_s=300.0, stabilisation_s=0.0)


def gpu_count(made: Plan) -> int:
    return sum(action.offer.gpu_count for action in launches(made))


@given(late_demands, late_demands, plain_offers)
@many
def test_more_demand_never_rents_less_but_for_a_node_of_packing_slack(
    some: tuple[Demand, ...], more: tuple[Demand, ...], shop: tuple[Offer, ...]
) -> None:
    fewer = make_snapshot(demands=some, offers=shop)
    both = merged(some, more)

    before = gpu_count(decide(fewer, PLENTY))
    after = gpu_count(decide(make_snapshot(demands=both, offers=shop), PLENTY))

    assert after >= before - max(o.gpu_count for o in shop)


def merged(some: tuple[Demand, ...], more: tuple[Demand, ...]) -> tuple[Demand, ...]:
    counts: dict[tuple[Any, ...], Demand] = {}
    for demand in (*some, *more):
        key = tuple(sorted(demand.shape.items()))
        known = counts.get(key)
        count = demand.count + (known.count if known else 0)
        counts[key] = demand.model_copy(update={"count": count})
    return tuple(counts.values())


@given(late_demands, plain_offers, st.lists(gangs, max_size=2))
@many
def test_what_is_launched_serves_what_it_was_launched_for(
    work: tuple[Demand, ...], shop: tuple[Offer, ...], groups: list[Gang]
) -> None:
    """Reliability 13: while instances boot, the next plans launch nothing for the same work.

    A gang may be packed onto nodes that were meant for others, which costs a node at most.
    """
    late = tuple(g.model_copy(update={"waiting_s": 400.0}) for g in named(groups, "g", "gang_id"))
    snapshot = make_snapshot(demands=work, gangs=late, offers=shop)
    counts = []
    for _ in range(3):
        made = decide(snapshot, PLENTY)
        counts.append(len(launches(made)))
        snapshot = snapshot.model_copy(
            update={"instances": (*snapshot.instances, *booting(made, len(snapshot.instances)))}
        )

    assert counts[1] <= (1 if groups else 0)
    assert counts[2] == 0


def booting(made: Plan, start: int) -> tuple[Instance, ...]:
    return tuple(
        make_instance(f"i-{start + n:04d}", S.BOOTING, offer=a.offer, deadline_at_s=NOW_S + 900)
        for n, a in enumerate(launches(made))
    )


@given(late_demands, plain_offers, st.integers(1, 5))
@many
def test_a_ramp_only_takes_longer(
    work: tuple[Demand, ...], shop: tuple[Offer, ...], limit: int
) -> None:
    at_once = decide(make_snapshot(demands=work, offers=shop), PLENTY)
    assume(len(launches(at_once)) <= 40)
    slow = PLENTY.model_copy(update={"launches_per_tick": limit})
    snapshot = make_snapshot(demands=work, offers=shop)
    made = decide(snapshot, slow)
    for _ in range(60):
        if not launches(made):
            break
        snapshot = snapshot.model_copy(
            update={"instances": (*snapshot.instances, *booting(made, len(snapshot.instances)))}
        )
        made = decide(snapshot, slow)

    assert {f.reason.code for f in made.findings} == {"capacity_coming"}
    rented = sum(i.offer.gpu_count for i in snapshot.instances)
    assert rented <= gpu_count(at_once) + max(o.gpu_count for o in shop)


# --- breach, handed from plan to plan -------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting_s", "since_s", "expected"),
    [
        pytest.param(301.0, None, NOW_S, id="begins"),
        pytest.param(301.0, NOW_S - 12, NOW_S - 12, id="goes-on"),
        pytest.param(299.0, NOW_S - 12, None, id="ends"),
    ],
)
def test_the_age_of_a_breach_is_handed_on(
    waiting_s: float, since_s: float | None, expected: float | None
) -> None:
    snapshot = make_snapshot(
        demands=(make_demand(waiting_s=waiting_s),), offers=(make_offer(),), breach_since_s=since_s
    )

    assert decide(snapshot, make_params()).breach_since_s == expected


def test_an_empty_snapshot_gives_an_empty_plan() -> None:
    made = decide(Snapshot(now_s=0.0), PolicyParams())

    assert made == Plan(summary="Everything runs at home; nothing waits.")


def test_money_that_is_spent_counts_against_the_next_launch() -> None:
    """A day's cap holds what was paid, what brings the others home, and the launch itself."""
    params = make_params(min_life_s=900.0, drain_s=1_800.0, exit_margin_s=900.0)
    old = commitment_of([Rental(NOW_S - 3_600, 4.0, 4)], [], now_s=NOW_S, exit_s=params.exit_s)
    assert old == Commitment(
        node_count=1, gpu_count=4, usd_per_hour=4.0, day_usd=4.0, month_usd=4.0, day_exit_usd=3.0
    )
    work = (make_demand(4, 1, waiting_s=400.0),)
    for cap, expected in ((10.99, 0), (11.0, 1)):
        snapshot = make_snapshot(
            demands=work,
            offers=(make_offer(),),
            caps=Caps(usd_per_day=cap),
            commitment=old,
        )

        assert len(launches(decide(snapshot, params))) == expected

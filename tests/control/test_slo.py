"""What broken promises about latency want rented."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hybrid.control.slo import SloWatch, Watched
from hybrid.core.models import Demand, LabelConstraint
from hybrid.core.slo import Judgement, Load, Slo, SloState
from tests.core.make import make_offer
from tests.world.clock import VirtualClock

SLO = Slo(target_ms=1_000, window_s=60)
MET = Judgement(
    SloState.MET, since_s=900.0, value_ms=300, why="fine", rate_rps=10, known_state=SloState.MET
)
BROKEN = replace(
    MET, state=SloState.BROKEN, value_ms=1_500, why="slow", known_state=SloState.BROKEN
)
LOST = Judgement(SloState.UNKNOWN, why="no answer", known_state=SloState.BROKEN)
HOME_FIRST = (
    (LabelConstraint(key="site", values=("onprem",)),),
    (LabelConstraint(key="site", values=("cloud",)),),
)
BOOT_S = 60.0


class Stage:
    """A watch over one service whose judgements a test says.

    Args:
        waiting: Requests in the system for the last while, while the promise was kept.
    """

    def __init__(self, waiting: float = 310.0, **changes: Any) -> None:
        self.clock = VirtualClock()
        self.says: tuple[Judgement, Load] = (MET, Load(2, 2, 4))
        self.told: list[tuple[str, str, str]] = []
        fields: dict[str, Any] = {"shape": {"GPU": 1.0, "CPU": 1.0}, "most_count": 8} | changes
        watched = Watched("chat", "app", "Model", SLO, judge=lambda: self.says, **fields)
        self.watch = SloWatch([watched], self.clock, lambda *words: self.told.append(words))
        self.see(MET, Load(2, 2, waiting))
        self.told.clear()

    def see(self, judgement: Judgement, load: Load, *, for_s: float = 40.0) -> None:
        """Let the service be so for a while."""
        self.says = judgement, load
        for _ in range(int(for_s // 5)):
            self.watch.look([make_offer()], {"a": BOOT_S})
            self.clock.advance(5)

    def wanted(self, *demands: Demand) -> list[tuple[int, bool]]:
        """Return counts of waiting work, and whether it is wanted at once."""
        return [(d.count, bool(d.why_now)) for d in self.watch.wanted(demands)]


def replicas(count: int, **shape: float) -> Demand:
    return Demand(
        shape={"GPU": 1.0, "CPU": 1.0} | shape, count=count, selectors=HOME_FIRST, waiting_s=1.0
    )


def test_without_services_nothing_is_changed() -> None:
    demands = (replicas(3),)
    watch = SloWatch()
    watch.look([], {})

    assert watch.wanted(demands) is demands
    assert watch.views() == ()


def test_a_promise_that_is_kept_wants_nothing() -> None:
    stage = Stage()
    stage.see(MET, Load(2, 2, 4))

    assert stage.wanted(replicas(3)) == [(3, False)]


def test_replicas_that_wait_need_not_wait_their_turn() -> None:
    stage = Stage()
    # 300 beyond the target: Serve asked for two more, and more will be needed.
    stage.see(BROKEN, Load(2, 5, 310))

    assert stage.wanted(replicas(2), replicas(5, GPU=2.0)) == [(2, True), (5, False)]
    (hastened, _) = stage.watch.wanted((replicas(2), replicas(5, GPU=2.0)))
    assert hastened.why_now == (
        "service chat breaks its promise: p95 of 1500 ms, 1000 allowed, and 310 requests in the "
        "system do not become fewer"
    )


def test_replicas_that_serve_has_not_asked_for_yet_are_added_where_it_would_put_them() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 3, 310))
    stage.watch.wanted((replicas(1),))

    found = stage.watch.wanted((replicas(1),))

    assert [(d.count, bool(d.why_now)) for d in found] == [(1, True), (1, True)]
    assert found[1].selectors == HOME_FIRST
    assert found[1].waiting_s is None


def test_replicas_that_start_already_are_not_counted_again() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 5, 310))

    assert stage.wanted() == []


def test_more_of_the_same_work_than_replicas_are_missing_waits_its_turn() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 5, 310))

    assert stage.wanted(replicas(9)) == [(3, True), (6, False)]


@pytest.mark.parametrize(
    "demand",
    [
        replicas(2, GPU=2.0),
        replicas(2).model_copy(update={"selectors": (HOME_FIRST[0],)}),
    ],
    ids=["another size", "home only"],
)
def test_other_work_is_left_alone(demand: Demand) -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 5, 310))

    assert stage.wanted(demand) == [(2, False)]


def test_the_limit_of_replicas_holds() -> None:
    stage = Stage(most_count=3)
    stage.see(BROKEN, Load(2, 2, 310))

    assert stage.wanted() == [(1, True)]


def test_a_breach_that_clears_before_a_boot_rents_nothing() -> None:
    stage = Stage(waiting=900)
    for waiting in range(600, 0, -100):
        stage.see(BROKEN, Load(2, 4, float(waiting)), for_s=10)

        assert stage.wanted(replicas(2)) == [(2, False)]


def test_what_is_wanted_stays_wanted_while_nothing_is_known() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 4, 310))
    stage.see(LOST, Load(), for_s=600)

    assert stage.wanted(replicas(2)) == [(2, True)]
    assert stage.watch.views()[0].state == "unknown"
    assert stage.watch.views()[0].why == "no answer"


def test_unknown_alone_wants_nothing() -> None:
    stage = Stage()
    stage.see(replace(LOST, known_state=SloState.UNKNOWN), Load(2, 2, 900))

    assert stage.wanted(replicas(2)) == [(2, False)]


def test_nodes_that_serve_never_uses_are_not_wanted_for_ever() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 2, 310), for_s=BOOT_S + 2 * SLO.window_s)
    assert stage.wanted() == [(2, True)]

    stage.see(BROKEN, Load(2, 2, 310), for_s=60)

    assert stage.wanted() == []
    assert "Serve has not asked for more replicas" in stage.watch.views()[0].why

    stage.see(MET, Load(2, 2, 4))
    stage.see(BROKEN, Load(2, 2, 310))
    assert stage.wanted() == [(2, True)]


def test_the_words_stay_as_long_as_the_number_does() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 5, 310))
    before = stage.watch.wanted((replicas(3),))
    stage.see(replace(BROKEN, value_ms=2_000), Load(2, 5, 333), for_s=5)

    assert stage.watch.wanted((replicas(3),)) == before


def test_changes_are_told_once_and_a_moment_of_blindness_is_none() -> None:
    stage = Stage()
    for judgement in (MET, MET, BROKEN, LOST, BROKEN, MET):
        stage.see(judgement, Load(2, 2, 4), for_s=5)

    assert [kind for kind, _, _ in stage.told] == ["service_broken", "service_met"]
    assert stage.told[0] == ("service_broken", "chat", "slow")


def test_the_view_of_a_service() -> None:
    stage = Stage()
    stage.see(BROKEN, Load(2, 4, 310), for_s=5)
    stage.see(BROKEN, Load(2, 4, 310))

    (view,) = stage.watch.views()
    assert (view.name, view.app, view.deployment) == ("chat", "app", "Model")
    assert (view.state, view.measured_ms, view.target_ms) == ("broken", 1_500, 1_000)
    assert (view.running_count, view.wanted_count, view.ahead_count) == (2, 4, 2)
    # It was over the target since the monotonic clock showed 900; it showed 1,000 at first.
    assert view.since_at_s == 1_790_000_000.0 - 100

"""One tick: observe, decide, act. Each is computed from what is true now.

A lost event or a crash costs one tick. One thread runs the loop; everything else asks it through
the mailbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hybrid.control import log
from hybrid.control.act import Actor
from hybrid.control.adopting import Adopter
from hybrid.control.base import Base
from hybrid.control.book import Book
from hybrid.control.boots import Boots
from hybrid.control.closing import Closer
from hybrid.control.clouds import Clouds
from hybrid.control.finish import Finisher
from hybrid.control.joins import Joins
from hybrid.control.jumps import Jumps
from hybrid.control.mass_trouble import MassTrouble
from hybrid.control.observe import Change, RayEye, Reconciler
from hybrid.control.pace import Pace
from hybrid.control.params import ControlParams
from hybrid.control.recorder import NoRecorder, Recorder
from hybrid.control.slo import SloWatch
from hybrid.control.takebacks import Takebacks
from hybrid.core.collector import collector_paused
from hybrid.core.cost import Payment, commitment_of, day_start_s, rental
from hybrid.core.errors import FencedError
from hybrid.core.lifecycle import Fact
from hybrid.core.models import Commitment, InstanceState
from hybrid.core.policy.caps import cap_reached
from hybrid.core.policy.decide import decide
from hybrid.core.policy.due import due_s
from hybrid.core.policy.health import health_of
from hybrid.core.policy.plan import Action, Plan, Snapshot, Source
from hybrid.core.ports import Clock, Mode
from hybrid.jobs.dispatch import Dispatcher
from hybrid.jobs.views import gangs_without_ours, nodes_for_jobs, without_ours

_log = log.get(__name__)

_DRAINING = InstanceState.DRAINING

# Instances whose boot times are remembered at the start.
_HISTORY = 200

_NUMBERS = re.compile(r"\d+")


@dataclass
class Loop:
    """The controller's loop over its parts.

    Attributes:
        is_ready: A full tick has seen the base up; set once.
        is_done: Closing is over: everything rented is proved gone and the base has ended.
        left_behind: What could not be ended, in words.
        due_s: How long after the last plan the next one should be made, at the latest.
        recorder: Keeps what was decided, and upon what.
        slo: Whether services keep their promises about latency.
    """

    book: Book
    base: Base
    clouds: Clouds
    ray: RayEye
    reconciler: Reconciler
    actor: Actor
    finisher: Finisher
    closer: Closer
    jobs: Dispatcher
    clock: Clock
    params: ControlParams
    recorder: Recorder = field(default_factory=NoRecorder)
    slo: SloWatch = field(default_factory=SloWatch)
    tick_count: int = 0
    is_ready: bool = False
    is_done: bool = False
    left_behind: list[str] = field(default_factory=list)
    phase: str = "starting"
    plan: Plan = field(default_factory=Plan)
    plan_at_s: float | None = None
    due_s: float | None = None
    mode: Mode = field(default_factory=Mode)
    commitment: Commitment = field(default_factory=Commitment)
    breach_since_s: float | None = None
    _payments: tuple[Payment, ...] = ()
    _payments_as_of: tuple[int, int, float] | None = None
    _last_summary: str = ""
    _trouble: Exception | None = None

    def __post_init__(self) -> None:
        """Make what only the loop needs."""
        self.jumps = Jumps(self.book, self.clock)
        self.boots = Boots()
        self.takebacks = Takebacks()
        self.pace = Pace(self.book, self.params.caps)
        self.adopter = Adopter(self.book, self.clouds, self.actor.launcher)
        self.joins = Joins(self.book)
        self.mass_trouble = MassTrouble(self.book, self.clock, self.params)

    def start(self) -> None:
        """Learn from history; call once before the first tick."""
        self.jumps.look_back(rest_s=self.params.backoff_cap_s)
        self.adopter.begin()
        self.jobs.start()
        for instance in reversed(self.book.ledger.instances(limit=_HISTORY)):
            self.boots.learn(instance)
            self.takebacks.remember(instance)

    def tick(self) -> None:
        """Observe, decide, act, once.

        Raises:
            FencedError: Another controller took over; stop at once.
            LedgerError: Nothing can be promised; nothing was launched.
        """
        self.tick_count += 1
        self.due_s = None
        self._trouble = None
        self.book.ledger.check_epoch()
        if not self._try(self._follow_clock):
            # Stored instants may be of another clock, so nothing is concluded from them.
            self._keep_alive()
        else:
            self._pass()
        if self._trouble is not None:
            raise self._trouble

    def _pass(self) -> None:
        self.mode = self.book.ledger.mode()
        self._observe()
        self.commitment = self._committed()
        # What keeps work alive and what frees money comes first, and a ledger that cannot be
        # written must not stop it: only what costs money needs one.
        if self.mode.is_closing:
            self._try(self._close)
        else:
            self._finish()
            self._try(self._orphans)
            if not self.jumps.has_jumped() and self._trouble is None:
                self._decide_and_act()
                self.actor.launcher.retry()
            self.phase = "" if self.is_ready else self._starting_phase()

    def _try(self, step: Callable[[], object]) -> bool:
        """Take a step of a tick and return whether it was taken.

        One that the ledger, or a mistake of ours, stops does not stop the others; the tick
        fails at its end.
        """
        try:
            step()
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001  # raised at the end of the tick
            self._trouble = self._trouble or error
            self.book.read()
            return False
        return True

    def _keep_alive(self) -> None:
        """Renew leases, and nothing else."""
        self.clouds.look()
        self.book.read()
        self._try(self.finisher.renew_leases)

    def _follow_clock(self) -> None:
        self._store_moves()
        by_s = self.jumps.notice()
        self.jobs.follow_clock(by_s)
        if self.breach_since_s is not None:
            self.breach_since_s += by_s
        self._store_moves()

    def _store_moves(self) -> None:
        self.jumps.apply()
        self.jobs.settle_clock()

    # --- observe --------------------------------------------------------------------------

    def _observe(self) -> None:
        if not self.mode.is_closing:
            self._try(self._ensure_base)
        # The clouds before the book: rows are written before create calls, so what is listed
        # without a row is no launch of ours.
        self.actor.launcher.seen_at_s = self.clock.monotonic_s()
        self.clouds.look()
        self.book.read()
        self._try(self.ray.look)
        self._try(self._adopt)
        self._try(self._look_at_health)
        self._try(self._reconcile)
        self._try(lambda: self.slo.look(self.clouds.offers(), self.boots.p95_s()))
        self._try(lambda: self.joins.note(self.ray))
        self._try(self._jobs)
        self._try(self._lend)
        self._try(self._note_ready)

    def _jobs(self) -> None:
        nodes = self.ray.view.nodes
        self.jobs.step(
            nodes,
            is_ray_up=self.ray.source.is_up,
            hosts=self.base.hosts(nodes),
            has_clouds=bool(self.clouds.providers),
            leaving={
                i.node_id: i.deadline_at_s
                for i in self.book.live(_DRAINING)
                if i.node_id and i.deadline_at_s and i.drain_kind == "busy"
            },
        )

    def _lend(self) -> None:
        if self.slo.may_lend:
            demands = without_ours(self.ray.view.demands)
            seen = self.snapshot().model_copy(update={"demands": demands})
            self.slo.lend(seen, self.jobs.book.live(), self.params.policy)

    def _ensure_base(self) -> None:
        found = self.base.ensure(check=self.book.ledger.check_epoch)
        self.book.record_all([self.book.event("base_restarted", *words) for words in found])

    def _adopt(self) -> None:
        if self.adopter.pending:
            self.adopter.step()
        self.finisher.orphans.exempt = self.adopter.pending

    def _look_at_health(self) -> None:
        if self.ray.source.is_up:
            nodes = self.ray.view.nodes
            self.mass_trouble.look(health_of(nodes, self.base.fleet.hosts(), self.book.all()))

    def _reconcile(self) -> None:
        is_held = self.mass_trouble.is_holding
        for change in self.reconciler.reconcile(is_mass_trouble=is_held):
            self._learn(change)

    def _note_ready(self) -> None:
        if not self.is_ready and self.ray.source.is_up:
            self.is_ready = self.base.is_settled(self.ray.view.nodes)
            if self.is_ready:
                self.book.record("base_ready", message="the head and the on-prem hosts are up")

    def _learn(self, change: Change) -> None:
        instance = change.after
        self.takebacks.learn(change)
        if change.fact is Fact.NODE_JOINED:
            self.boots.learn(instance)
            self.book.clear_failures(instance.offer)
        if _is_offers_fault(change):
            self.actor.launcher.resting.failed(instance.offer, instance.problem)

    def _committed(self) -> Commitment:
        now_s = self.clock.now_s()
        as_of = self.book.read_count, self.book.ended_count, day_start_s(now_s)
        if self._payments_as_of != as_of:
            self._payments = tuple(self.book.ledger.payments(now_s=now_s))
            self._payments_as_of = as_of
        rentals = map(rental, self.book.all())
        exit_s = self.params.policy.exit_s
        return commitment_of(rentals, self._payments, now_s=now_s, exit_s=exit_s)

    # --- decide ---------------------------------------------------------------------------

    def sources(self) -> tuple[Source, ...]:
        """Return everything that is looked at, and whether it could be seen."""
        stranded = self.clouds.stranded(self.book.all())
        return (self.ray.source, *self.clouds.sources.values(), *stranded)

    def snapshot(self) -> Snapshot:
        """Return what a decision depends on, as of the last observation."""
        now_s, live = self.clock.now_s(), self.jobs.book.live()
        offers, boots = self.clouds.offers(), self.boots.p95_s()
        return Snapshot(
            now_s=now_s,
            nodes=nodes_for_jobs(self.ray.view.nodes, live),
            hosts=self.base.hosts(self.ray.view.nodes),
            demands=self.slo.wanted(without_ours(self.ray.view.demands)),
            gangs=gangs_without_ours(self.ray.view.gangs),
            # What a blind look takes for free, or for gone, must not move anybody.
            jobs=self.jobs.views.of(live) if self.ray.source.is_up else (),
            loans=self.slo.loans(),
            instances=self.book.all(),
            offers=offers,
            failures=self.book.failures(),
            boot_s_by_offer=boots,
            caps=self.params.caps,
            commitment=self.commitment,
            starts=self.jobs.pulse.starts(now_s, offers, boots),
            home_release_gpus_per_s=self.jobs.pulse.released_gpus_per_s(now_s),
            usual_day_share=self.pace.usual_share(now_s),
            takebacks=self.takebacks.by_zone(now_s),
            breach_since_s=self.breach_since_s,
            blind=tuple(source for source in self.sources() if not source.is_up),
            unread=self.clouds.unread(),
            mode=self.mode,
            tick_id=self.tick_count,
        )

    def _decide_and_act(self) -> None:
        """Decide and act; when a cloud refuses, decide again with what it taught, in this tick.

        Each refusal puts its offer, or all it reaches, to rest, so the next plan falls through to
        the next offer, zone, region or cloud. Bounded: every round costs at least one call.
        """
        actions: list[Action] = []
        for _ in range(self.params.failover_rounds):
            refused_before = self.actor.launcher.refused_count
            self._decide()
            if not self.mode.is_dry_run:
                self.jobs.carry_out(self.plan.actions)
            self.actor.carry_out(self.plan)
            actions += self.plan.actions
            self.commitment = self._committed()
            if self.actor.launcher.refused_count == refused_before:
                break
        self.plan = self.plan.model_copy(update={"actions": tuple(actions)})

    def _decide(self) -> None:
        snapshot = self.snapshot()
        with collector_paused():
            self.plan = decide(snapshot, self.params.policy)
        self.recorder.note(snapshot, self.params.policy, self.plan)
        self.plan_at_s = snapshot.now_s
        self.due_s = due_s(snapshot, self.plan, self.params.policy)
        self.breach_since_s = self.plan.breach_since_s
        # A dry run plans the same in every tick; once is enough to know.
        words = _NUMBERS.sub("#", self.plan.summary)
        is_told = self.mode.is_dry_run and words == self._last_summary
        if self.plan.actions and not is_told:
            self.book.record(
                "plan_made",
                message=self.plan.summary,
                tick_id=self.tick_count,
                actions=[a.model_dump(mode="json", exclude={"offer"}) for a in self.plan.actions],
            )
        self._last_summary = words

    # --- act ------------------------------------------------------------------------------

    def _finish(self) -> None:
        nodes = self.ray.node_by_instance()
        if not self.jumps.has_jumped():
            # Told in old time, a new expiry could lie in the past: the next tick knows better.
            self._try(self.finisher.renew_leases)
        self._try(self.finisher.release_expired)
        if not self.mode.is_dry_run:
            is_up = self.ray.source.is_up
            self._try(lambda: self.finisher.drive_drains(nodes, is_ray_up=is_up))
            self._try(self.finisher.drive_terminations)

    def _orphans(self) -> None:
        items = self.finisher.orphans.find()
        if not self.mode.is_dry_run:
            self.finisher.orphans.end(items)

    def _close(self) -> None:
        self.plan = Plan(summary="The cluster is going down.")
        is_taken = self._try(self._step_down)
        if not is_taken:
            self.phase = "the ledger cannot be written"
        self._finish()
        if is_taken and not self.phase:
            self.phase = "ending the on-prem nodes and the head"
            self.left_behind = self.closer.finish()
            self.is_done = True

    def _step_down(self) -> None:
        self._hold_caps()
        self.phase = self.closer.step(self.mode, self.ray.node_by_instance())

    def _hold_caps(self) -> None:
        """Let work that `down` waits for run no longer than a hard cap allows."""
        over = cap_reached(self.snapshot())
        by_s = self.clock.now_s() + self.params.policy.drain_s
        if over is not None and self.mode.close_by_s is not None and self.mode.close_by_s > by_s:
            self.mode = self.mode.model_copy(update={"close_by_s": by_s})
            self.book.ledger.set_mode(self.mode)
            self.book.record("down_shortened", "", over.message, reason_code=over.code)

    def _starting_phase(self) -> str:
        if not self.ray.source.is_up:
            return "starting the Ray head"
        there = {n.host for n in self.ray.view.nodes if n.host}
        missing = [name for name in self.base.fleet.hosts() if name not in there]
        return f"waiting for {', '.join(missing)} to join" if missing else "starting"


def _is_offers_fault(change: Change) -> bool:
    """Return whether a rented instance came to nothing, so that its offer should rest."""
    if change.fact is Fact.LAUNCH_OVERDUE or change.fact is Fact.JOIN_OVERDUE:
        return True
    # It was accepted, and it ended or failed before its node ever joined.
    is_early = change.before.state in (InstanceState.REQUESTED, InstanceState.BOOTING)
    return is_early and change.fact in (Fact.NODE_FAILED, Fact.GONE, Fact.MISSING)

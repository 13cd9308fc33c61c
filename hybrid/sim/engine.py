"""One trace under one policy on a virtual clock."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, replace

from hybrid.core.policy.jobs.draft import Draft
from hybrid.core.policy.jobs.terms import is_home_soon, late_budget, terms_of
from hybrid.core.policy.plan import Snapshot, Start, Starts
from hybrid.sim.course import Course
from hybrid.sim.fleet import home_node, rented_node
from hybrid.sim.world import Kind

# With nothing running, booting or to come, only the policy can go on; it had time enough then.
_STANDSTILL_S = 7 * 86_400.0


@dataclass
class Engine(Course):
    """Runs one trace under one policy."""

    def __post_init__(self) -> None:
        """Set up the clock."""
        super().__post_init__()
        self._is_ticking = False
        self._still_from_s = 0.0

    def run(self) -> None:
        """Run until every job is done and every node is returned."""
        for job in self.trace.jobs:
            self._push(job.submit_s, Kind.ARRIVAL, job.job_id)
        while self._heap:
            self._pass_time(self._heap[0][0])
            is_changed = False
            is_tick = False
            while self._heap and self._heap[0][0] == self.now_s:
                _, _, kind, subject = heapq.heappop(self._heap)
                if kind is Kind.TICK:
                    is_tick = True
                else:
                    is_changed |= self._happen(kind, subject)
            if is_tick:
                self._is_ticking = False
                self._dispatch()
                self._tick()
            elif is_changed:
                self._dispatch()
            if not self._is_ticking and (self.queue or self.rented):
                self._note_standstill()
                self._is_ticking = True
                tick_s = self.params.tick_s
                self._push((math.floor(self.now_s / tick_s) + 1) * tick_s, Kind.TICK, None)

    def _note_standstill(self) -> None:
        """Stop a run in which nothing will ever happen, instead of ticking for ever.

        Raises:
            ValueError: Nothing runs, boots or is to come, and the policy has let the rest wait.
        """
        if self._heap:
            self._still_from_s = self.now_s
        elif self.now_s - self._still_from_s > _STANDSTILL_S:
            raise ValueError(
                f"{self.policy.name} leaves {len(self.queue)} jobs waiting and {len(self.rented)} "
                f"nodes rented for ever: nothing happened for {_STANDSTILL_S / 86_400:.0f} days"
            )

    def _happen(self, kind: Kind, subject: object) -> bool:
        """Let something happen; return whether it may let waiting work start."""
        match kind:
            case Kind.ARRIVAL:
                job = self.jobs[str(subject)]
                self.queue[job.view.job_id] = job.view
                self._outcomes.submit(job.view.job_id, self.now_s)
            case Kind.END:
                return self._end(*subject)  # type: ignore[misc]
            case Kind.READY:
                return self._ready(str(subject))
            case Kind.FAILED:
                return self._fail(str(subject))
            case _:
                self._saved(*subject)  # type: ignore[misc]
        return True

    # --- the policy -----------------------------------------------------------------------

    def _dispatch(self) -> None:
        if not self.queue:
            return
        if self.board.home.free_gpus <= 0 and self.board.cloud.free_gpus <= 0:
            return
        starts = self._starts()
        terms = replace(
            self.terms,
            now_s=self.now_s,
            late_budget=late_budget(starts, self.policy.jobs),
            is_home_soon=is_home_soon(starts, self.policy.jobs),
        )
        draft = Draft(terms, self.board, dict(self.queue), self.at_home, self.in_cloud)
        self.policy.dispatch(draft)
        for action in draft.actions:
            if isinstance(action, Start):
                self._do_start(action, is_taken=True)

    def _tick(self) -> None:
        snapshot = self.snapshot()
        self.terms = terms_of(snapshot, self.policy.jobs)
        began_s = time.perf_counter()
        actions = self.policy.decide(snapshot)
        self.decide_s.append(time.perf_counter() - began_s)
        for action in actions:
            self._do(action)
        if actions:
            self._dispatch()

    def snapshot(self) -> Snapshot:
        """Return what the policy may see now."""
        cloud = self.board.cloud
        for node_id in self._stale:
            if node_id in self.board.home.free:
                free = self.board.home.free[node_id]
                self._nodes[node_id] = home_node(node_id, self.board.home.total[node_id], free)
        for node_id, node in self.rented.items():
            # How long a node is idle changes all the time; nothing else does by itself.
            if node.is_ready and (node_id in self._stale or node.idle_since_s is not None):
                labels = self.labels[node.instance.offer.offer_id]
                self._nodes[node_id] = rented_node(node, labels, cloud.free[node_id], self.now_s)
        self._stale.clear()
        return _EMPTY.model_copy(
            update={
                "now_s": self.now_s,
                "nodes": tuple(self._nodes.values()),
                "jobs": (
                    *self.queue.values(),
                    *self.at_home.values(),
                    *self.in_cloud.values(),
                ),
                "instances": tuple(node.instance for node in self.rented.values()),
                "offers": self.offers,
                "boot_s_by_offer": self.boots.p95_s(),
                "starts": self._starts(),
                "home_release_gpus_per_s": self._released.per_s(self.now_s),
            }
        )

    def _starts(self) -> Starts:
        soon_s = self.policy.jobs.soon_ratio * self.terms.reserve_s
        return self._outcomes.starts(self.now_s, soon_s)


_EMPTY = Snapshot(now_s=0.0)

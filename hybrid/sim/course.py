"""What happens to jobs and nodes of the simulated cluster, each time at its present moment.

Strict where it costs the policy: a node is held while a job on it is saved, rented GPUs are
billed meanwhile, each resumption pays its load, and every interruption is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.core.models import InstanceState
from hybrid.core.models.work import JobView, Slot
from hybrid.core.policy.plan import Action, Drain, Launch, Move, Start, Suspend, Terminate
from hybrid.sim.fleet import Rented, booting, rented_node
from hybrid.sim.simjob import SimJob
from hybrid.sim.world import Kind, World


@dataclass
class Course(World):
    """Jobs start, stop, move and end; nodes are rented, come and are returned."""

    # --- actions of the policy ------------------------------------------------------------

    def _do(self, action: Action) -> None:
        if self.log is not None:
            self.log.append((self.now_s, action))
        match action:
            case Start():
                self._do_start(action, is_taken=False)
            case Suspend():
                self._do_suspend(action)
            case Move():
                self._do_move(action)
            case Launch():
                self._launch(action)
            case Drain() | Terminate():
                self._return(action.instance_id)

    def _do_start(self, action: Start, *, is_taken: bool) -> None:
        del self.queue[action.job_id]
        self._start(self.jobs[action.job_id], action.slots, is_taken=is_taken)

    def _do_suspend(self, action: Suspend) -> None:
        job = self.jobs[action.job_id]
        save_s = job.view.checkpoint.save_s if job.view.checkpoint else 0.0
        job.suspension_count += 1
        slots = self._stop(job, suspension_count=job.suspension_count)
        self._heat(slots, save_s)
        self.queue[action.job_id] = job.view
        self._outcomes.suspend(action.job_id)

    def _do_move(self, action: Move) -> None:
        job = self.jobs[action.job_id]
        save_s = job.view.checkpoint.save_s if job.view.checkpoint else 0.0
        slots = self._stop(job)
        match action.purpose:
            case "home":
                job.home_count += 1
                self._hold(slots, job, save_s)
            case "exchange":
                job.exchange_count += 1
                self._heat(slots, save_s)
            case "pack":
                job.move_count += 1
                self._heat(slots, save_s)
        self._start(job, action.slots, is_taken=False, delay_s=save_s)

    # --- jobs -----------------------------------------------------------------------------

    def _start(
        self, job: SimJob, slots: tuple[Slot, ...], *, is_taken: bool, delay_s: float = 0
    ) -> None:
        view = job.view
        is_home = slots[0].node_id in self.board.home.free
        if is_home:
            for slot in slots:
                hot_s = self._hot_until_s.get(slot.node_id, 0.0) - self.now_s
                delay_s = max(delay_s, hot_s)
        if not is_taken:
            (self.board.home if is_home else self.board.cloud).take(view, slots)
        self._touch(slots)
        load_s = view.checkpoint.load_s if view.is_started and view.checkpoint else 0.0
        if job.first_at_s is None:
            job.first_at_s = self.now_s + delay_s
            self._outcomes.begin(self.now_s, job.first_at_s - view.submitted_at_s)
        self._outcomes.place(view.job_id, self.now_s, is_home=is_home)
        useful_s = self.now_s + delay_s + load_s
        job.version += 1
        job.taken_at_s = self.now_s
        job.view = view.model_copy(
            update={"slots": slots, "useful_from_s": useful_s, "is_started": True}
        )
        if is_home:
            self.at_home[view.job_id] = job.view
        else:
            self.in_cloud[view.job_id] = job.view
            for slot in slots:
                self.rented[slot.node_id].idle_since_s = None
        self._push(useful_s + job.left_s, Kind.END, (view.job_id, job.version))

    def _release(self, job: SimJob) -> None:
        """Take a job from its place, and count what it did there."""
        view = job.view
        held_s = self.now_s - job.taken_at_s
        self._touch(view.slots)
        if self.at_home.pop(view.job_id, None) is not None:
            self.board.home.give(view, view.slots)
            self.home_gpu_s += held_s * view.gpus
            return
        del self.in_cloud[view.job_id]
        self.board.cloud.give(view, view.slots)
        self.cloud_gpu_s += held_s * view.gpus
        job.rented_gpu_s += held_s * view.gpus
        for slot in view.slots:
            node = self.rented[slot.node_id]
            node.busy_gpu_s += held_s * slot.gpus
            if self.board.cloud.free[slot.node_id] >= node.gpus:
                node.idle_since_s = self.now_s

    def _stop(self, job: SimJob, **counts: int) -> tuple[Slot, ...]:
        """Stop a job with its progress saved; return where it ran."""
        view = job.view
        done_s = max(0.0, self.now_s - (view.useful_from_s or self.now_s))
        self._release(job)
        job.version += 1
        job.left_s = max(1.0, job.left_s - done_s)
        job.view = view.model_copy(
            update={
                "slots": (),
                "useful_from_s": None,
                "progress_s": view.progress_s + done_s,
                "interruption_count": view.interruption_count + 1,
                **counts,
            }
        )
        return view.slots

    def _heat(self, slots: Sequence[Slot], save_s: float) -> None:
        """Keep nodes at home busy while a job on them is saved."""
        for slot in slots:
            self._hot_until_s[slot.node_id] = self.now_s + save_s

    def _hold(self, slots: Sequence[Slot], job: SimJob, save_s: float) -> None:
        """Keep rented GPUs busy while a job on them is saved."""
        cloud = self.board.cloud
        cloud.take(job.view, slots)
        for slot in slots:
            node = self.rented[slot.node_id]
            node.idle_since_s = None
            node.busy_gpu_s += slot.gpus * save_s
        self.cloud_gpu_s += job.view.gpus * save_s
        self._push(self.now_s + save_s, Kind.SAVED, (job.view, tuple(slots)))

    def _saved(self, view: JobView, slots: tuple[Slot, ...]) -> None:
        self.board.cloud.give(view, slots)
        self._touch(slots)
        for slot in slots:
            node = self.rented.get(slot.node_id)
            if node is not None and self.board.cloud.free[slot.node_id] >= node.gpus:
                node.idle_since_s = self.now_s

    def _end(self, job_id: str, version: int) -> bool:
        job = self.jobs[job_id]
        if job.version != version:
            return False
        if job_id in self.at_home:
            self._released.add(self.now_s, job.view.gpus)
        self._release(job)
        self._outcomes.forget(job_id)
        job.ended_at_s = self.now_s
        self.done_count += 1
        if self.on_progress:
            self.on_progress(self.done_count)
        return True

    # --- nodes ----------------------------------------------------------------------------

    def _launch(self, action: Launch) -> None:
        offer = action.offer
        if self.rented_gpus + offer.gpu_count > self.params.max_rented_gpus:
            return
        is_coming, at_s = self.launches.draw(self.now_s)
        instance_id = f"rent-{self.launches.count:07d}"
        instance = booting(instance_id, offer, action.reason, self.now_s)
        billed_s = self.now_s + self.params.boot.alloc_s
        self.rented[instance_id] = Rented(instance, offer.gpu_count, billed_s)
        self.rented_gpus += offer.gpu_count
        self._push(at_s, Kind.READY if is_coming else Kind.FAILED, instance_id)

    def _ready(self, instance_id: str) -> bool:
        node = self.rented.get(instance_id)
        if node is None:
            return False
        node.instance = node.instance.model_copy(
            update={
                "state": InstanceState.RUNNING,
                "state_at_s": self.now_s,
                "joined_at_s": self.now_s,
                "node_id": instance_id,
            }
        )
        node.idle_since_s = self.now_s
        self.boots.learn(node.instance)
        self.ready_gpus += node.gpus
        labels = self.labels[node.instance.offer.offer_id]
        self.board.cloud.add(rented_node(node, labels, node.gpus, self.now_s))
        self._stale.add(instance_id)
        return True

    def _fail(self, instance_id: str) -> bool:
        node = self.rented.pop(instance_id, None)
        if node is None:
            return False
        self.rented_gpus -= node.gpus
        return True

    def _return(self, instance_id: str) -> None:
        node = self.rented.pop(instance_id, None)
        if node is None:
            return
        self.bill.close(node, self.now_s)
        self.launches.note_return(self.now_s)
        self.rented_gpus -= node.gpus
        if node.is_ready:
            self.ready_gpus -= node.gpus
            self.board.cloud.remove(instance_id)
            self._nodes.pop(instance_id, None)
            self._stale.discard(instance_id)
        else:
            self.launches.cancelled += 1

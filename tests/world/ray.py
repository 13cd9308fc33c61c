"""A Ray cluster in memory: places tasks, home first, and drains as Ray does (ray.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import ClusterError
from hybrid.core.labels import admits_any
from hybrid.core.models import (
    ClusterView,
    Demand,
    Gang,
    Labels,
    Node,
    NodeStatus,
    Selector,
    Shape,
    Spread,
)
from hybrid.core.policy.room import fits
from hybrid.core.ports import DrainKind, DrainReply
from tests.world.clock import VirtualClock


@dataclass
class Task:
    """A task: waits, runs on one node, is retried when the node dies.

    Attributes:
        ends_s: When it is done, by the monotonic clock.
        gang: Tasks with the same name start at the same time, each on a node of its own.
    """

    shape: Shape
    lasts_s: float
    selectors: tuple[Selector, ...] = ()
    gang: str = ""
    node_id: str = ""
    ends_s: float = 0.0
    is_done: bool = False
    deaths: int = 0


@dataclass
class SimNode:
    """A raylet.

    Attributes:
        idle_since_s: By the monotonic clock.
        deadline_s: When a drain of it is over, by the monotonic clock.
    """

    node_id: str
    instance_id: str
    host: str
    labels: Labels
    total: Shape
    idle_since_s: float
    is_draining: bool = False
    deadline_s: float | None = None
    is_dead: bool = False
    is_head: bool = False


@dataclass
class SimRay:
    """See `hybrid.core.ports.Cluster`.

    Attributes:
        is_silent: Every call fails with ClusterError.
        is_deaf: Only drains fail.
        answers_get_lost: Drains work, and then their answer is lost.
        retired_count: Nodes that were removed from `nodes`, so that no id is given twice.
        drains: (instance, kind) of each drain that was asked for.
        killed_busy: Instances whose machine ended while work ran on them.
    """

    clock: VirtualClock
    nodes: dict[str, SimNode] = field(default_factory=dict)
    retired_count: int = 0
    tasks: list[Task] = field(default_factory=list)
    is_silent: bool = False
    is_deaf: bool = False
    answers_get_lost: bool = False
    drains: list[tuple[str, str]] = field(default_factory=list)
    killed_busy: list[str] = field(default_factory=list)

    def add(
        self,
        shape: Shape,
        labels: Labels,
        *,
        instance_id: str = "",
        host: str = "",
        is_head: bool = False,
    ) -> SimNode:
        node = SimNode(
            node_id=f"node-{self.retired_count + len(self.nodes)}",
            instance_id=instance_id,
            host=host,
            labels=labels,
            total=shape,
            idle_since_s=self.clock.monotonic_s(),
            is_head=is_head,
        )
        self.nodes[node.node_id] = node
        return node

    def submit(self, count: int, shape: Shape, lasts_s: float, *selectors: Selector) -> list[Task]:
        tasks = [Task(shape, lasts_s, selectors) for _ in range(count)]
        self.tasks += tasks
        return tasks

    def submit_gang(self, name: str, count: int, shape: Shape, lasts_s: float) -> list[Task]:
        tasks = [Task(shape, lasts_s, gang=name) for _ in range(count)]
        self.tasks += tasks
        return tasks

    def kill(self, node: SimNode) -> None:
        """The node dies at once; its tasks wait again."""
        node.is_dead = True
        for task in self.on(node):
            task.node_id, task.deaths = "", task.deaths + 1

    def step(self) -> None:
        """Let tasks end, draining nodes leave, and waiting tasks start."""
        now_s = self.clock.monotonic_s()
        for task in self.tasks:
            if task.node_id and not task.is_done and now_s >= task.ends_s:
                task.is_done = True
                node = self.nodes[task.node_id]
                if not self.on(node):
                    node.idle_since_s = now_s
        for node in self.nodes.values():
            if node.is_draining and not self.on(node):
                node.is_dead = True
        for task in self.tasks:
            if not task.node_id and not task.is_done and not task.gang:
                self._place(task)
        for gang in self._waiting_gangs().values():
            self._place_gang(gang)

    def view(self) -> ClusterView:
        if self.is_silent:
            raise ClusterError("Ray does not answer")
        counts: dict[str, tuple[Demand, int]] = {}
        for task in self.tasks:
            if not task.node_id and not task.is_done and not task.gang:
                demand = Demand(shape=task.shape, count=1, selectors=task.selectors)
                key = demand.model_dump_json()
                counts[key] = (demand, counts.get(key, (demand, 0))[1] + 1)
        demands = tuple(d.model_copy(update={"count": n}) for d, n in counts.values())
        gangs = tuple(
            Gang(
                gang_id=name,
                bundles=tuple(Demand(shape=t.shape, count=1) for t in tasks),
                spread=Spread.STRICT_SPREAD,
            )
            for name, tasks in self._waiting_gangs().items()
        )
        nodes = tuple(self._view(n) for n in self.nodes.values())
        return ClusterView(nodes=nodes, demands=demands, gangs=gangs)

    def drain(
        self, node_id: str, *, kind: DrainKind, deadline_at_s: float, message: str
    ) -> DrainReply:
        if self.is_silent or self.is_deaf:
            raise ClusterError("Ray does not answer")
        node = self.nodes.get(node_id)
        if node is None or node.is_dead:
            return DrainReply(is_accepted=True)
        assert node.instance_id, "a host or the head was drained"
        self.drains.append((node.instance_id, kind.value))
        if kind is DrainKind.IDLE:
            if self.on(node):
                return DrainReply(is_accepted=False, message="the node is no longer idle")
            node.is_dead = True
        node.is_draining = True
        node.deadline_s = self.clock.monotonic_s() + deadline_at_s - self.clock.now_s()
        if self.answers_get_lost:
            raise ClusterError("the answer was lost")
        return DrainReply(is_accepted=True)

    def on(self, node: SimNode) -> list[Task]:
        """Return the tasks that run on a node."""
        return [t for t in self.tasks if t.node_id == node.node_id and not t.is_done]

    def free(self, node: SimNode) -> dict[str, float]:
        free = dict(node.total)
        for task in self.on(node):
            for name, amount in task.shape.items():
                free[name] = free.get(name, 0.0) - amount
        return free

    def _waiting_gangs(self) -> dict[str, list[Task]]:
        gangs: dict[str, list[Task]] = {}
        for task in self.tasks:
            if task.gang and not task.node_id and not task.is_done:
                gangs.setdefault(task.gang, []).append(task)
        return gangs

    def _place_gang(self, tasks: list[Task]) -> None:
        for task in tasks:
            self._place(task)
        # Equal tasks, so a free node for each is enough; two on one node are no gang.
        if len({task.node_id for task in tasks if task.node_id}) < len(tasks):
            for task in tasks:
                task.node_id = ""

    def _place(self, task: Task) -> None:
        for selector in task.selectors or ((),):
            for node in self.nodes.values():
                is_open = not (node.is_dead or node.is_draining)
                if (
                    is_open
                    and admits_any((selector,), node.labels)
                    and fits(task.shape, self.free(node))
                ):
                    task.node_id = node.node_id
                    task.ends_s = self.clock.monotonic_s() + task.lasts_s
                    return

    def _view(self, node: SimNode) -> Node:
        is_busy = bool(self.on(node))
        status = NodeStatus.RUNNING if is_busy else NodeStatus.IDLE
        if node.is_draining:
            status = NodeStatus.DRAINING
        if node.is_dead:
            status = NodeStatus.DEAD
        return Node(
            node_id=node.node_id,
            instance_id=node.instance_id,
            host=node.host,
            labels=node.labels,
            total=node.total,
            available=self.free(node),
            status=status,
            idle_s=None
            if is_busy or node.is_dead
            else self.clock.monotonic_s() - node.idle_since_s,
            is_head=node.is_head,
        )


def all_done(tasks: Sequence[Task]) -> Callable[[], bool]:
    """Return a question: are all of them done?"""
    return lambda: all(task.is_done for task in tasks)

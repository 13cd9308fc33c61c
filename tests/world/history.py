"""Histories: one script of events, cut by a crash of the controller at any point of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.control.params import ControlParams
from hybrid.core.errors import ClusterError, LedgerError, TransientError
from hybrid.core.models import Event, Offer
from tests.world.ledgers import fast_folder
from tests.world.memory import MemoryStore
from tests.world.quick import STEP_S, quick_params
from tests.world.trace import Crash, Point
from tests.world.world import World, make_offer

GPU = {"GPU": 1.0}


def no_change(_: World) -> None:
    """Leave a world as it is."""


@dataclass
class Story:
    """What happens if nobody crashes.

    Attributes:
        name: For the test's id.
        prepare: Makes the world unkind before the first tick.
        is_down: After the machines work, `down` is asked with this drain time.
        task_s: How long each task runs.
        settle_s: How long it may take to be quiet, after a crash too.
        max_nodes: More machines than this were never needed.
        is_on_disk: The ledger is a real file; otherwise it is in memory, and much faster.
        after_crash: What the next start does first, beside taking over.
        late_count: Tasks that come right after a crash, when nobody looks.
        gang_size: Tasks of a gang that comes beside the others; each needs a whole node.
    """

    name: str
    prepare: Callable[[World], None] = no_change
    offers: Sequence[Offer] = field(default_factory=lambda: [make_offer(boot_s=10.0)])
    params: Callable[[], ControlParams] = quick_params
    down_s: float | None = None
    task_s: float = 25.0
    settle_s: float = 600.0
    max_nodes: int = 2
    may_lose_work: bool = False
    is_on_disk: bool = False
    late_count: int = 0
    gang_size: int = 0
    after_crash: Callable[[World], None] = no_change

    def make(self, folder: Path) -> World:
        """Return a world at the start of the story."""
        world = World(
            folder,
            params=self.params(),
            offers=list(self.offers),
            step_s=STEP_S,
            host_count=1,
            store=None if self.is_on_disk else MemoryStore(),
        )
        for cloud in world.clouds.values():
            cloud.boot_s = 10.0
        self.prepare(world)
        return world

    def play(self, world: World) -> None:
        """Play the story to its end: six tasks of which two find no place at home."""
        world.run(2 * STEP_S)
        self.submit(world)
        if self.down_s is not None:
            world.run(self.settle_s, until=lambda: any(_is_working(world)))
            world.desk.close(drain_s=self.down_s, owner="test")
        self.finish(world)

    def submit(self, world: World) -> None:
        """Bring the work."""
        world.ray.submit(4, GPU, self.task_s * 3)
        world.ray.submit(6, GPU, self.task_s)
        if self.gang_size:
            world.ray.submit_gang("pg-1", self.gang_size, {"GPU": 4.0}, self.task_s)

    def finish(self, world: World) -> None:
        """Play on until nothing is left."""
        if world.ledger.mode().is_closing:
            while not world.loop.is_done:
                world.step()
                assert world.clock.true_s() < 1_790_003_600, f"down hangs: {world.describe()}"
            return
        tasks = world.ray.tasks
        world.run(self.settle_s, until=lambda: all(t.is_done for t in tasks))
        world.run(self.settle_s, until=world.is_quiet)


def _is_working(world: World) -> Iterator[bool]:
    for node in world.ray.nodes.values():
        yield bool(node.instance_id) and bool(world.ray.on(node))


@dataclass(frozen=True)
class Cut:
    """A crash at a point, and how long nobody is there afterwards."""

    point: Point
    pause_s: float

    def __str__(self) -> str:
        return f"crash at {self.point}, {self.pause_s:.0f} s without a controller"


def points_of(story: Story) -> list[Point]:
    """Return every point of a story that is not cut."""
    with fast_folder() as folder:
        world = story.make(folder)
        world.tracer.is_recording = True
        start = world.tracer.count
        story.play(world)
        check_end(story, world)
        assert world.tracer.points[0].number == start
        return world.tracer.points


def replay(story: Story, cut: Cut) -> None:
    """Play a story with a crash, let a new controller take over, and hold every promise."""
    with fast_folder() as folder:
        world = story.make(folder)

        def hook(point: Point) -> None:
            if point.number == cut.point.number:
                assert point == cut.point, f"not the same history: {point} is not {cut.point}"
                world.tracer.hook = None
                raise Crash

        world.tracer.hook = hook
        try:
            story.play(world)
        except Crash:
            world.ray.submit(story.late_count, GPU, 60.0 + cut.pause_s)
            world.sleep(cut.pause_s)
            world.boot()
            resume(story, world)
        check_end(story, world)


@dataclass(frozen=True)
class TwoCuts:
    """A crash, and a second one of the controller that took over.

    Attributes:
        second: Points that the second controller passes before it dies, its start included.
    """

    first: Cut
    second: int
    pause_s: float

    def __str__(self) -> str:
        return f"{self.first}; another one {self.second} points later, {self.pause_s:.0f} s without"


def replay_two(story: Story, cuts: TwoCuts) -> bool:
    """Play a story with two crashes; return whether the second controller lived to its own.

    The second one may die while it starts, while it recovers, or at work.
    """
    with fast_folder() as folder:
        world = story.make(folder)
        world.tracer.at(cuts.first.point.number, _crash)
        try:
            story.play(world)
        except Crash:
            world.ray.submit(story.late_count, GPU, 60.0 + cuts.first.pause_s)
            world.sleep(cuts.first.pause_s)
        world.tracer.at(world.tracer.count + cuts.second, _crash)
        has_crashed_again = False
        try:
            world.boot()
            resume(story, world)
        except Crash:
            has_crashed_again = True
            world.sleep(cuts.pause_s)
            world.boot()
            resume(story, world)
        check_end(story, world)
        return has_crashed_again


def _crash() -> None:
    raise Crash


def fault_of(point: Point) -> Exception:
    """Return the error that such a call raises when its answer does not come."""
    if point.who == "ledger":
        return LedgerError(f"disk full at {point}")
    if point.who in ("ray", "jobs"):
        return ClusterError(f"no answer at {point}")
    return TransientError(f"no answer at {point}", provider=point.who)


def replay_fault(story: Story, point: Point) -> None:
    """Play a story in which one call fails: before it did anything, or after it did all."""
    with fast_folder() as folder:
        world = story.make(folder)
        world.may_fail = True

        def fail() -> None:
            raise fault_of(point)

        world.tracer.at(point.number, fail)
        story.play(world)
        assert world.tracer.hook is None, "the point was never reached"
        check_end(story, world)


def resume(story: Story, world: World) -> None:
    """Play on after a crash, wherever the story was."""
    if len(world.ray.tasks) - story.late_count < 10 and story.down_s is None:
        # It crashed before the work came.
        story.submit(world)
    is_closing = world.ledger.mode().is_closing
    story.after_crash(world)
    if story.down_s is not None and not is_closing:
        world.desk.close(drain_s=story.down_s, owner="test")
    story.finish(world)


def check_end(story: Story, world: World) -> None:
    """Hold what must be true when all is over."""
    world.assert_nothing_left()
    assert world.max_nodes <= story.max_nodes, f"{world.max_nodes} machines at a time"
    if not story.may_lose_work:
        assert world.ray.killed_busy == []
        assert all(task.deaths == 0 for task in world.ray.tasks)
    used = sum(spend.usd for spend in world.ledger.spends())
    lived = sum(
        m.offer.usd_per_hour * ((m.ended_s or 0.0) - m.booted_s + 10.0) / 3600
        for m in world.machines()
    )
    assert used >= lived - 1e-6, "less was booked than the machines cost"


def tell(world: World) -> object:
    """Return all that a ledger says, apart from its own id."""
    ledger = world.ledger
    return (
        [row.model_copy(update={"spec": None, "token": ""}) for row in ledger.instances()],
        [_bare(e) for e in ledger.events(limit=100_000)],
        ledger.spends(),
        ledger.failures(),
        ledger.jobs(),
        ledger.mode(),
        dict(ledger.job_counts()),
    )


def _bare(event: Event) -> Event:
    return event.model_copy(update={"facts": {}})

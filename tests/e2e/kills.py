"""A controller that is killed with -9 again and again while bursts come and go.

Everything is real but the clouds: the command line, controller, ledger and Ray. What the clouds
themselves know of it is the judge (`chronicle`).
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hybrid.client import Job
from hybrid.core.models import JobState
from hybrid.node.processes import Process, descendants, find, is_alive, send
from tests.e2e.bodies import BodyDeployment, embodied
from tests.e2e.chronicle import Chronicle
from tests.e2e.clouds import CloudDeployment, deployed_in, emulated
from tests.e2e.deployment import Command
from tests.e2e.tide import CAPS, SIZES, Tide, settings

LONGEST_LIFE_S = 12.0
"""A controller lives no longer. It takes about 2 s to its first tick."""

LONGEST_ABSENCE_S = 3.0
LOST_RATIO = 0.3
"""How often a cloud loses the answer to the next create call, for each kill."""

KINDS = ("at a moment", "within a call", "after a call")


@dataclass
class Storm:
    """Kills controllers.

    Attributes:
        seed: Of all that is random here. The machine's speed is random, too.
        kinds: How many kills were of which kind.
        lost_count: Create calls whose answers the clouds were told to lose.
        job: The work; it was submitted to the first controller.
    """

    cluster: CloudDeployment
    chronicle: Chronicle
    seed: int
    kinds: Counter[str] = field(default_factory=Counter)
    lost_count: int = 0
    job: Job | None = None

    def __post_init__(self) -> None:
        """Make what it draws from."""
        self._rng = random.Random(self.seed)
        self.tide = Tide(self.cluster, random.Random(self.seed + 1))
        self._victim: Process | None = None
        self._delay_s = 0.0
        self._changed = threading.Event()

    def blow(self, kill_count: int) -> None:
        """Kill so many controllers, then let everything come home."""
        self.chronicle.on_change = self._on_change
        with self.surging():
            victim = find(self.cluster.controller_pid)
            assert victim is not None
            for _ in range(kill_count):
                self._kill(victim)
                self._maybe_lose_an_answer()
                victim = self._another()

    @contextmanager
    def surging(self) -> Iterator[None]:
        """Let bursts come and go; afterwards the work has ended and everything came home."""
        job = self.job = self.tide.begin()
        try:
            yield
        finally:
            self.tide.end()
        self.cluster.wait_until_ready()
        self.cluster.wait_until(
            lambda: self.cluster.jobs()[job.id].state.is_ended, "the work to end"
        )
        self.cluster.wait_until_home()

    def problems(self) -> list[str]:
        """Return what the clouds and the ledger have against it; nothing when all is well."""
        chronicle, peak = self.chronicle, self.chronicle.peak
        rows = {row.instance_id: row for row in self.cluster.rows()}
        found = [f"not watched: {problem}" for problem in chronicle.problems]
        found += [f"alive at the end: {name}" for name in chronicle.alive]
        found += [f"{n} machines for intent {k}" for k, n in chronicle.per_intent.items() if n > 1]
        found += [f"{n} machines for token {k}" for k, n in chronicle.per_token.items() if n > 1]
        for name, cap in CAPS.items():
            value = chronicle.spent_usd() if name == "usd_per_day" else getattr(peak, name)
            found += [f"{name} was {value:g}, and {cap:g} is its cap"] * (value > cap)
        for life in chronicle.lives:
            if life.intent not in rows:
                found.append(f"no row for {life.machine_id}")
        found += [f"{name} has not ended" for name, row in rows.items() if not row.is_ended]
        if self.job is None or self.cluster.jobs()[self.job.id].state is not JobState.SUCCEEDED:
            found.append("the work did not come to its end")
        return found

    def facts(self) -> dict[str, object]:
        """Return what was seen, for a person to read."""
        lives = self.chronicle.lives
        rows = self.cluster.rows()
        kinds = Counter(event.kind for event in self.cluster.events())
        return {
            "seed": self.seed,
            "kills": dict(self.kinds),
            "controllers_ready": kinds["base_ready"],
            "waves": self.tide.wave_count,
            "tasks": self.tide.task_count,
            "answers_lost": self.lost_count,
            "machines": dict(Counter(life.cloud for life in lives)),
            "machines_joined": sum(row.joined_at_s is not None for row in rows),
            "intents": len(rows),
            "most_for_one_intent": max(self.chronicle.per_intent.values(), default=0),
            "most_for_one_token": max(self.chronicle.per_token.values(), default=0),
            "alive_at_the_end": self.chronicle.alive,
            "peak": asdict(self.chronicle.peak),
            "spent_usd": round(self.chronicle.spent_usd(), 4),
            "caps": dict(CAPS),
        }

    def _kill(self, victim: Process) -> None:
        """Kill it: at some moment, or when something changes at a cloud, before or after it hears.

        When nothing changes for long, it is killed anyway.
        """
        kind = self._rng.choice(KINDS)
        life_s = self._rng.uniform(0.0, LONGEST_LIFE_S)
        if kind == "at a moment":
            time.sleep(life_s)
        else:
            time.sleep(life_s / 4)
            self._changed.clear()
            # Within the call: from the cloud's own thread, which holds the answer back.
            self._victim = victim if kind == "within a call" else None
            was_seen = self._changed.wait(LONGEST_LIFE_S)
            self._victim = None
            kind = kind if was_seen else "at a moment"
            if kind == "after a call":
                time.sleep(self._rng.uniform(0.0, 0.05))
        send(victim, signal.SIGKILL)
        self.cluster.wait_until(lambda: not is_alive(victim), "the controller to be gone")
        self.kinds[kind] += 1

    def _on_change(self, _cloud: str) -> None:
        victim = self._victim
        if victim is not None:
            self._victim = None
            send(victim, signal.SIGKILL)
        self._changed.set()

    def _maybe_lose_an_answer(self) -> None:
        if self._rng.random() < LOST_RATIO:
            self.lost_count += 1
            self._rng.choice(list(self.cluster.emulated.by_name.values())).lose_next_answer()

    def _another(self) -> Process:
        """Start `hybrid up` after a while, and return the controller that it starts."""
        time.sleep(self._rng.uniform(0.0, LONGEST_ABSENCE_S))
        command = self.cluster.start("up", str(self.cluster.config), "-y")
        found: list[Process] = []

        def is_there() -> bool:
            found.extend(_controllers(command))
            return bool(found)

        self.cluster.wait_until(is_there, "a controller")
        threading.Thread(target=command.wait, name="up").start()
        return found[0]


def _controllers(command: Command) -> list[Process]:
    """Return the controller that a command has started."""
    return [p for p in descendants([command.process.pid]) if b"hybrid.app\0run" in _words(p.pid)]


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def storm(*, seed: int, has_bodies: bool) -> Iterator[Storm]:
    """Yield a storm over a cluster that is up; afterwards nothing of it is left, anywhere."""
    if has_bodies:
        with embodied(*SIZES) as cluster:
            own = settings(cluster.emulated)
            del own["providers"]  # those of bodies
            yield _begun(cluster, seed, **own)
    else:
        with emulated() as clouds, deployed_in(clouds) as cluster:
            # What has no body never joins.
            yield _begun(cluster, seed, **settings(clouds), deadlines={"join": "5s"})


def _begun(cluster: CloudDeployment, seed: int, **config: object) -> Storm:
    chronicle = Chronicle(cluster.emulated, SIZES)
    chronicle.begin()
    if isinstance(cluster, BodyDeployment):
        cluster.begin(**config)
    else:
        cluster.configure(**config)
        cluster.up()
    return Storm(cluster, chronicle, seed)

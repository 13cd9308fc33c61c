"""A tick with 500 instances in mixed states, over three emulated clouds.

A program of its own (`python -m scripts.bench_parts.mixed`), see `alone`. The real adapters and
SDKs ask the emulators over HTTP, and those run in processes of their own: so the processor time of
this process is ours, and theirs is told beside it.
"""

from __future__ import annotations

import gc
import math
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ray import RayCluster
from hybrid.control.calling import CalledProvider, CallLimits
from hybrid.control.finish import ROUTINE_COUNT
from hybrid.control.together import AtOnce
from hybrid.core.bucket import Rate
from hybrid.core.models import Caps, Instance, InstanceState, Offer, Reason
from hybrid.core.policy.plan import Launch
from hybrid.core.ports import Provider, ProviderContext
from providers import aws, baidu, gcp
from providers.baidu.credentials import VARIABLES
from scripts.bench_parts import alone
from scripts.bench_parts.big import Size, make_offers, make_params, serving, wire_reply
from scripts.bench_parts.figures import BenchError, Figure, shortened
from scripts.bench_parts.machine import ROOT, Footprint
from scripts.soak_parts.judging import own_mib
from tests.emulators.baidu import ACCESS_KEY, SECRET_KEY
from tests.providers import aws_cloud, baidu_cloud, gcp_cloud
from tests.world.clock import VirtualClock
from tests.world.world import World

_TICK_MS = 1_000.0
_S = InstanceState
_T = TypeVar("_T")
_REASON = Reason(code="queue_wait", message="a benchmark")
_START_S = 60.0
_FAST = CallLimits(rates={k: Rate(per_s=1e4, burst=10_000) for k in CallLimits().rates})

SHARES: Mapping[InstanceState, float] = {
    _S.RUNNING: 0.60,
    _S.BOOTING: 0.20,
    _S.DRAINING: 0.10,
    _S.TERMINATING: 0.10,
}
"""The states, and how many of the instances are in each."""


def measure() -> list[Figure]:
    """Measure in a process of its own."""
    return alone.measure("mixed")


def figures(*, count: int = 500, runs: int = 20) -> Iterator[Figure]:
    """Yield the figures for so many instances."""
    with _mixed(count) as rig:
        rig.tick()
        states = Counter(instance.state.value for instance in rig.instances())
        words = f"{count} instances ({_told(states)}) over three emulated clouds"
        yield _figure("mixed_tick_ms", f"a whole tick with {words}", rig, [rig.tick] * runs)
        first_mb = _grown(rig, 2 * runs)
        yield Figure(
            name="mixed_rss_growth_mb",
            what=f"growth of the process's own memory over {2 * runs} such ticks, after as many",
            value=_grown(rig, 2 * runs) - first_mb,
            unit="MB",
            details={"own_mb": round(_own_mb(), 1)},
        )
        leased = len(rig.leased())
        rig.age()
        steps = [rig.tick] * math.ceil(leased / len(rig.emulators) / ROUTINE_COUNT)
        what = f"the same, while all {leased} leases are due, which takes {len(steps)} ticks"
        yield _figure("mixed_renewing_tick_ms", what, rig, steps)
        rig.check_leases()


@dataclass
class Emulator:
    """One, in a process of its own.

    Attributes:
        usage: What it says of itself.
    """

    process: subprocess.Popen[str]
    url: str
    usage: str

    @classmethod
    def start(cls, name: str) -> Emulator:
        """Start it. Raises `BenchError`: it does not start."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.emulators", name],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        usage = ""
        for line in process.stdout:
            usage += line
            if line.startswith("Ctrl-C"):
                return cls(process, usage.split(maxsplit=2)[1], usage)
        raise BenchError(f"the emulator of {name} ended with {process.wait()}")

    def tell(self, path: str, facts: Mapping[str, object]) -> None:
        """Change how it behaves."""
        httpx.post(f"{self.url}/{path}", json=facts, trust_env=False).raise_for_status()

    def cpu_s(self) -> float:
        """Return its processor time so far."""
        return Footprint.of(self.process.pid).cpu_s

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class _RealClock(VirtualClock):
    """This machine's clock: the clouds of this world live in it."""

    now_s = staticmethod(SystemClock().now_s)
    monotonic_s = staticmethod(SystemClock().monotonic_s)
    sleep = staticmethod(SystemClock().sleep)


class _Asked:
    """See `AtOnce`, which makes the calls.

    Attributes:
        wall_s: How long calls were under way.
    """

    def __init__(self) -> None:
        self.wall_s = 0.0
        self._at_once = AtOnce()

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> Iterator[tuple[int, _T]]:
        began_s = time.perf_counter()
        yield from self._at_once(calls)
        self.wall_s += time.perf_counter() - began_s


@dataclass
class Rig:
    """A controller over three clouds."""

    world: World
    emulators: Mapping[str, Emulator]
    asked: _Asked
    _until_s: float = 0.0

    def tick(self) -> None:
        """Do what a controller does each tick, the view for the API included."""
        self.world.desk.tick_started()
        self.world.loop.tick()
        self.world.desk.publish()
        if blind := self.world.loop.clouds.blind():
            raise BenchError(f"a cloud could not be read: {blind[0].problem}")

    def age(self) -> None:
        """Let all leases be due, as after a short absence."""
        params = self.world.params
        self._until_s = time.time() + params.lease_s - params.renew_s - 1.0
        for instance in self.leased():
            self.world.loop.book.note(instance, lease_until_s=self._until_s)

    def check_leases(self) -> None:
        """Raise `BenchError` unless all leases have been renewed since."""
        late = [i for i in self.leased() if (i.lease_until_s or 0.0) <= self._until_s]
        if late:
            raise BenchError(f"{len(late)} leases were not renewed: {late[0].problem}")

    def instances(self) -> Sequence[Instance]:
        """Return all that live."""
        return self.world.loop.book.all()

    def leased(self) -> list[Instance]:
        """Return those whose leases are renewed."""
        return list(self.world.loop.book.live(_S.BOOTING, _S.RUNNING, _S.DRAINING))

    def cpu_s(self) -> dict[str, float]:
        """Return the processor time of each emulator."""
        return {name: emulator.cpu_s() for name, emulator in self.emulators.items()}


def _figure(
    name: str,
    what: str,
    rig: Rig,
    steps: Sequence[Callable[[], None]],
) -> Figure:
    wall_s, own_s, rest_s = [], [], []
    before = rig.cpu_s()
    for step in steps:
        wall, own, asked_s = time.perf_counter(), time.process_time(), rig.asked.wall_s
        step()
        wall_s.append(time.perf_counter() - wall)
        rest_s.append(wall_s[-1] - (rig.asked.wall_s - asked_s))
        own_s.append(time.process_time() - own)
    theirs = {n: (cpu_s - before[n]) / len(steps) for n, cpu_s in rig.cpu_s().items()}
    return Figure(
        name=name,
        what=f"{what}; median of wall times. The emulators run on the same processors",
        value=statistics.median(wall_s) * 1e3,
        unit="ms",
        target=_TICK_MS,
        details={
            "best_ms": shortened(min(wall_s) * 1e3),
            "worst_ms": shortened(max(wall_s) * 1e3),
            "cpu_median_ms": shortened(statistics.median(own_s) * 1e3),
            "without_calls_ms": shortened(statistics.median(rest_s) * 1e3),
            "emulators_cpu_ms": {n: shortened(cpu_s * 1e3) for n, cpu_s in theirs.items()},
            "runs": len(steps),
        },
    )


# --- the clouds ---------------------------------------------------------------------------


@contextmanager
def _mixed(count: int) -> Iterator[Rig]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hybrid-bench-")))
        emulators = {}
        for name in ("aws", "gcp", "baidu"):
            emulators[name] = Emulator.start(name)
            stack.callback(emulators[name].stop)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        _set_environment(patch, emulators["gcp"])
        params = make_params(caps=Caps(node_count=count))
        world = World(folder, params, make_offers(), clock=_RealClock(), host_count=8)
        stack.callback(world.ledger.close)
        clouds = world.loop.clouds
        # As in production: called at once, offers read now and then.
        asked = _Asked()
        clouds.together, clouds.offers_every_s = asked, 1e9
        clouds.providers = [_called(world, p) for p in _providers(emulators, world)]
        rig = Rig(world, emulators, asked)
        _rent(rig, count)
        address = stack.enter_context(serving(_reply(_mix(rig))))
        world.loop.ray.cluster = RayCluster(address, "", timeout_s=30.0)
        world.head.is_up = True
        world.fleet.joined = set(world.fleet.shapes)
        yield rig


def _set_environment(patch: pytest.MonkeyPatch, google: Emulator) -> None:
    aws_cloud.set_environment(patch)
    key_file = re.search(r"GOOGLE_APPLICATION_CREDENTIALS=(\S+)", google.usage)
    assert key_file is not None
    patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file[1])
    patch.setenv("NO_GCE_CHECK", "true")
    for name, value in zip(VARIABLES, (ACCESS_KEY, SECRET_KEY, ""), strict=True):
        patch.setenv(name, value)


def _providers(emulators: Mapping[str, Emulator], world: World) -> Iterator[Provider]:
    context = ProviderContext(
        cluster_id=world.ledger.cluster_id,
        cluster_name="bench",
        state_dir="/nowhere",
        ray_dir="/nowhere",
        clock=SystemClock(),
    )
    words = emulators["aws"].usage
    found = re.search(r"image: (\S+)\s+subnets: \{(.+)\}\s+security_groups: \[(\S+)\]", words)
    assert found is not None
    region: dict[str, Any] = {
        "image": found[1],
        "subnets": dict(pair.split(": ") for pair in found[2].split(", ")),
        "security_groups": [found[3]],
    }
    raw: dict[str, Any] = {"regions": {"us-east-1": region}, "pools": [aws_cloud.POOL]}
    yield aws.make("aws", raw | {"endpoint_url": emulators["aws"].url}, context)
    raw = gcp_cloud.SETTINGS | {"endpoint_url": emulators["gcp"].url, "pools": [gcp_cloud.POOL]}
    yield gcp.make("gcp", raw, context)
    emulators["baidu"].tell("_emulator/set", {"quota": 10_000})
    endpoints = {"bj": emulators["baidu"].url}
    raw = baidu_cloud.ACCOUNT | {"endpoints": endpoints, "pools": [baidu_cloud.POOL]}
    yield baidu.make("baidu", raw, context)


def _called(world: World, provider: Provider) -> CalledProvider:
    check = world.ledger.check_epoch
    return CalledProvider(provider, SystemClock(), random.Random(1), _FAST, check=check)


# --- the instances ------------------------------------------------------------------------


def _rent(rig: Rig, count: int) -> None:
    """Rent them, spread evenly."""
    loop = rig.world.loop
    loop.clouds.look()
    loop.book.read()
    offers: dict[str, Offer] = {offer.provider: offer for offer in loop.clouds.offers()}
    names = sorted(offers)
    loop.actor.launcher.launch(
        [Launch(offer=offers[names[n % len(names)]], reason=_REASON) for n in range(count)]
    )
    accepted = len(list(loop.book.live(_S.BOOTING)))
    if accepted != count:
        problems = {i.problem for i in loop.book.all() if i.problem}
        raise BenchError(f"{accepted} of {count} were launched: {sorted(problems)[:3]}")


def _mix(rig: Rig) -> dict[InstanceState, list[Instance]]:
    """Bring the instances into their states, in each cloud alike; what is told to end, ends slowly.

    Returns:
        Those that are nodes, by state.
    """
    rig.emulators["aws"].tell("control/set", {"ending_lists": 10**6})
    rig.emulators["gcp"].tell("_control/cloud", {"delete_s": 1e6})
    rig.emulators["baidu"].tell("_emulator/set", {"ending_s": 1e6})
    book = rig.world.loop.book
    by_cloud: dict[str, list[Instance]] = {}
    for instance in book.all():
        by_cloud.setdefault(instance.offer.provider, []).append(instance)
    nodes: dict[InstanceState, list[Instance]] = {_S.RUNNING: [], _S.DRAINING: []}
    for instances in by_cloud.values():
        start = 0
        for state, share in SHARES.items():
            end = start + round(share * len(instances))
            for instance in instances[start:end] if state is not _S.BOOTING else ():
                now = _brought(rig, instance, state)
                if state in nodes:
                    nodes[state].append(now)
            start = end
    return nodes


def _brought(rig: Rig, instance: Instance, state: InstanceState) -> Instance:
    now_s = time.time()
    changes: dict[str, object] = {"state": state, "state_at_s": now_s}
    if state is _S.DRAINING:
        changes |= {"drain_kind": "busy", "drain_reason": _REASON}
    if state in (_S.RUNNING, _S.DRAINING):
        node_id = instance.instance_id.encode().rjust(28, b"-").hex()
        changes |= {"node_id": node_id, "joined_at_s": now_s}
    changes["deadline_at_s"] = None if state is _S.RUNNING else now_s + 86_400.0
    return rig.world.loop.book.note(instance, **changes)


def _reply(nodes: Mapping[InstanceState, Sequence[Instance]]) -> bytes:
    """Return Ray's answer: the instances that are nodes, and some work that waits."""
    from hybrid.adapters.ray.gcs import _wire

    size = Size(hosts=8, shapes=30, tasks=3_000)
    everybody = [instance for group in nodes.values() for instance in group]
    reply = _wire("autoscaler_pb2").GetClusterResourceStateReply()
    reply.ParseFromString(wire_reply(size, everybody))
    leaving = {instance.instance_id for instance in nodes[_S.DRAINING]}
    for raw in reply.cluster_resource_state.node_states:
        if raw.instance_id in leaving:
            raw.status = 4  # number of Ray's NodeStatus DRAINING
        elif raw.instance_id:
            raw.status, raw.idle_duration_ms = 1, 0  # RUNNING
    return bytes(reply.SerializeToString(deterministic=True))


def _told(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _grown(rig: Rig, count: int) -> float:
    """Tick so often, and return the process's own memory then, MB."""
    for _ in range(count):
        rig.tick()
    return _own_mb()


def _own_mb() -> float:
    gc.collect()
    return own_mib() * 2**20 / 1e6


if __name__ == "__main__":
    sys.exit(alone.tell(figures))

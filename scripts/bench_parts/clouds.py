"""What renting costs in calls, through the real adapters and SDKs at the emulated clouds.

The emulators run in this process, so no wall time here is a cloud's. The ratio gives each call the
latency that a cloud has, and compares calls at once with the same calls in turn.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.control.book import Book
from hybrid.control.calling import CalledProvider, CallLimits
from hybrid.control.clouds import Clouds
from hybrid.control.launching import Launcher
from hybrid.control.params import ClusterFacts, ControlParams
from hybrid.control.resting import Resting
from hybrid.control.together import AtOnce, Together, in_turn
from hybrid.core.bucket import Rate
from hybrid.core.models import InstanceState, LaunchSpec, Offer, Reason
from hybrid.core.policy.plan import Launch
from hybrid.core.ports import Provider
from scripts.bench_parts import alone
from scripts.bench_parts.figures import BenchError, Figure
from tests.providers.aws_cloud import POOL as AWS_POOL
from tests.providers.aws_cloud import AwsAccount, AwsCloud, set_environment
from tests.providers.baidu_cloud import baidu_cloud
from tests.providers.gcp_cloud import gcp_cloud

TARGETS: Mapping[str, float] = {"aws": 1.2, "gcp": 2.2, "baidu": 2.2}
"""Calls for each launched instance."""

_FAST = CallLimits(
    rates={k: Rate(per_s=1e4, burst=10_000) for k in CallLimits().rates}, try_count=1
)
_REASON = Reason(code="queue_wait", message="a benchmark")


@dataclass(frozen=True)
class Account:
    """One emulated cloud.

    Attributes:
        make: Makes the adapter for the cluster with this id.
        count: Returns how many requests it was asked so far.
    """

    make: Callable[[str], Provider]
    count: Callable[[], int]


def measure() -> list[Figure]:
    """Measure in a process of its own."""
    return alone.measure("clouds")


def figures(*, count: int = 100, in_turn_count: int = 30, latency_s: float = 0.2) -> list[Figure]:
    """Launch `count` instances over three clouds, list them, and launch some with latency."""
    with _accounts() as accounts, tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder:
        with _launcher(Path(folder) / "a.db", accounts, AtOnce()) as launcher:
            found = list(_calls(launcher, accounts, count))
            found += _lists(launcher, accounts, count)
        with _launcher(Path(folder) / "b.db", accounts, AtOnce(), latency_s) as launcher:
            at_once_s = _timed(launcher, in_turn_count)
        with _launcher(Path(folder) / "c.db", accounts, in_turn, latency_s) as launcher:
            in_turn_s = _timed(launcher, in_turn_count)
    return [*found, _ratio(in_turn_count, latency_s, at_once_s, in_turn_s)]


def _calls(launcher: Launcher, accounts: Mapping[str, Account], count: int) -> Iterator[Figure]:
    before = {name: account.count() for name, account in accounts.items()}
    launched = _launch(launcher, count)
    for name, account in accounts.items():
        calls = account.count() - before[name]
        yield Figure(
            name=f"calls_per_launch_{name}",
            what=f"API calls for each instance that was launched at {name}, of {count} over three "
            f"clouds",
            value=calls / launched[name],
            unit="calls",
            target=TARGETS[name],
            details={"calls": calls, "instances": launched[name]},
        )


def _lists(launcher: Launcher, accounts: Mapping[str, Account], count: int) -> Iterator[Figure]:
    before = {name: account.count() for name, account in accounts.items()}
    launcher.clouds.offers_every_s = 1e9
    launcher.clouds.look()
    launcher.clouds.look()
    for name, account in accounts.items():
        calls = (account.count() - before[name]) / 2
        yield Figure(
            name=f"list_calls_{name}",
            what=f"API calls of one look at {name}, one region, while {count} instances are rented",
            value=calls,
            unit="calls",
            target=1,
            details={"listed": len(launcher.clouds.listed[name])},
        )


def _ratio(count: int, latency_s: float, at_once_s: float, in_turn_s: float) -> Figure:
    return Figure(
        name="launch_at_once_ratio",
        what=f"{count} launches over three clouds that need {latency_s:g} s for an answer, at once "
        f"against one after the other",
        value=at_once_s / in_turn_s,
        unit="ratio",
        details={"at_once_s": round(at_once_s, 2), "in_turn_s": round(in_turn_s, 2)},
    )


def _timed(launcher: Launcher, count: int) -> float:
    started_s = time.perf_counter()
    _launch(launcher, count)
    return time.perf_counter() - started_s


def _launch(launcher: Launcher, count: int) -> dict[str, int]:
    """Launch `count` instances, spread evenly; return how many each cloud has accepted."""
    offers: dict[str, Offer] = {}
    for offer in launcher.clouds.offers():
        offers.setdefault(offer.provider, offer)
    names = sorted(offers)
    plan = [Launch(offer=offers[names[n % len(names)]], reason=_REASON) for n in range(count)]
    launcher.launch(plan)
    accepted = dict.fromkeys(names, 0)
    for instance in launcher.book.live(InstanceState.BOOTING):
        accepted[instance.offer.provider] += 1
    if sum(accepted.values()) != count:
        problems = {i.problem for i in launcher.book.all() if i.problem}
        raise BenchError(f"{accepted} of {count} were launched: {sorted(problems)[:3]}")
    return accepted


@contextmanager
def _launcher(
    path: Path, accounts: Mapping[str, Account], together: Together, latency_s: float = 0.0
) -> Iterator[Launcher]:
    clock, params, rng = SystemClock(), ControlParams(), random.Random(1)
    ledger = open_ledger(sqlite_url(path))
    try:
        ledger.acquire("bench", now_s=clock.now_s())
        far = [_Far(a.make(ledger.cluster_id), latency_s) for a in accounts.values()]
        called = [CalledProvider(p, clock, rng, _FAST, check=ledger.check_epoch) for p in far]
        book = Book(ledger, clock, params.deadlines)
        clouds = Clouds(called, clock, together=together)
        clouds.look()
        book.read()
        numbers = iter(range(10**6))
        yield Launcher(
            book=book,
            clouds=clouds,
            clock=clock,
            params=params,
            facts=ClusterFacts(
                name="bench",
                cluster_id=ledger.cluster_id,
                head_address="10.0.0.1:6379",
                controller_url="http://10.0.0.1:8700",
                ray_version="2.60.0",
                python_version="3.11.0",
            ),
            new_id=lambda: f"i-{next(numbers):010x}",
            secret=b"bench",
            resting=Resting(book, clock, params, rng),
        )
    finally:
        ledger.close()


class _Far:
    """See `Provider`: one that is so far away."""

    def __init__(self, inner: Provider, latency_s: float) -> None:
        self._inner = inner
        self._latency_s = latency_s
        self.name, self.list_lag_s = inner.name, inner.list_lag_s
        self.offers, self.list_instances = inner.offers, inner.list_instances
        self.terminate, self.extend = inner.terminate, inner.extend

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`."""
        time.sleep(self._latency_s)
        return self._inner.launch(offer, spec, token=token, join_token=join_token)


@contextmanager
def _accounts() -> Iterator[dict[str, Account]]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        set_environment(patch)
        account = AwsAccount()
        stack.callback(account.close)
        aws = AwsCloud(account.emulator, account.client)
        aws.pools = [AWS_POOL | {"infra": "aws/us-east-1"}]  # any zone of it: CreateFleet
        gcp = stack.enter_context(gcp_cloud())
        baidu = stack.enter_context(baidu_cloud(patch))
        yield {
            "aws": Account(aws.provider, aws.controls.count),
            "gcp": Account(gcp.provider, lambda: len(gcp.emulator.api.log)),
            "baidu": Account(baidu.provider, lambda: len(baidu.emulator.requests)),
        }


if __name__ == "__main__":
    sys.exit(alone.tell(figures))

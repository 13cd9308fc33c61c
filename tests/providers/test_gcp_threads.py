"""Google Cloud: many calls at once, as the controller makes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hybrid.core.errors import (
    CapacityError,
)
from hybrid.core.models import LaunchSpec
from tests.providers.contract import launch, live, make_spec
from tests.providers.gang_contract import launch_gang, make_gang
from tests.providers.gcp_cloud import GcpCloud, gcp_cloud

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


_FIRST_CALLS = """
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from hybrid.adapters.clock import SystemClock
from hybrid.core.ports import ProviderContext
from providers.gcp import make

context = ProviderContext(cluster_id="c", cluster_name="n", state_dir="", ray_dir="",
                          clock=SystemClock())
providers = [make(name, {raw!r}, context) for name in ("gcp", "gcp-2")]
assert "google.cloud.compute_v1" not in sys.modules
gate = threading.Barrier(16)

def call(number):
    gate.wait()
    return providers[number % 2].list_instances()

with ThreadPoolExecutor(16) as pool:
    print(list(pool.map(call, range(16))) == [[]] * 16)
"""


def test_the_sdk_may_be_loaded_by_many_first_calls_at_once(cloud: GcpCloud) -> None:
    code = _FIRST_CALLS.replace("{raw!r}", repr({**cloud.settings, "pools": cloud.pools}))

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("True\n", "")


def test_gangs_and_singles_from_many_threads_are_as_good_as_one_after_another(
    cloud: GcpCloud,
) -> None:
    provider = cloud.provider()
    gangs = [make_gang(cloud, 3) for _ in range(4)] * 2  # each twice, at the same moment
    singles = [make_spec(cloud) for _ in range(4)] * 2

    with ThreadPoolExecutor(20) as pool:
        lists = [pool.submit(provider.list_instances) for _ in range(4)]
        whole = list(pool.map(lambda specs: launch_gang(provider, specs), gangs))
        alone = list(pool.map(lambda spec: launch(provider, spec), singles))

    assert all(future.result() is not None for future in lists)
    assert whole[:4] == whole[4:]
    assert alone[:4] == alone[4:]
    rented = {i for gang in whole for i in gang.values()} | set(alone)
    assert sorted(live(provider)) == sorted(rented)
    assert len(rented) == 16


def test_failures_from_many_threads_are_told_to_each(cloud: GcpCloud) -> None:
    """Also while the list is read, which forgets launches that are over."""
    cloud.emulator.faults.add(method="instances.*nsert", code="STOCKOUT", times=1_000)
    provider = cloud.provider()
    specs = [make_spec(cloud) for _ in range(8)] * 2

    def ask(spec: LaunchSpec) -> str:
        provider.list_instances()
        with pytest.raises(CapacityError) as caught:
            launch(provider, spec)
        return caught.value.code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(ask, specs)) == {"STOCKOUT"}

    assert cloud.names() == []

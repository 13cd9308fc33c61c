"""The local cloud: the port's contract, and what is its own. Real processes, fake Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import pytest
from pydantic import ValidationError

from hybrid.core.errors import (
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    TransientError,
)
from hybrid.core.models import CloudState, LaunchSpec, Market, Offer
from hybrid.node.stopping import stop
from providers.local import LocalProvider, make
from providers.local.machine import Machine
from providers.local.params import Params
from providers.local.provider import GONE_LISTED_S
from tests.node.box import wait_until
from tests.providers.contract import ProviderContract, end, launch, listed, live, make_spec
from tests.providers.local_cloud import POOL, LocalCloud, local_cloud

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    with local_cloud(tmp_path / "local") as made:
        yield made


class TestContract(ProviderContract):
    """Every promise of the port."""


def wait_for_running(cloud: LocalCloud, provider_id: str) -> dict[str, Any]:
    """Wait until its fake Ray runs and return what that was given."""
    path = cloud.instance(provider_id.removeprefix("local-"))

    def phase() -> bool:
        status = path / "status.json"
        return status.exists() and json.loads(status.read_bytes())["phase"] == "running"

    wait_until(phase, "the node to run")
    temp_dir = json.loads((path / "node.json").read_bytes())["temp_dir"]
    given: dict[str, Any] = json.loads(Path(temp_dir, "fake.json").read_bytes())
    return given


# --- what an instance is ------------------------------------------------------------------


def test_an_instance_joins_with_its_labels_its_id_and_the_traded_token(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)

    provider_id = launch(provider, spec)

    given = wait_for_running(cloud, provider_id)
    assert given["env"]["RAY_CLOUD_INSTANCE_ID"] == spec.instance_id
    assert given["env"]["RAY_AUTH_TOKEN"] == "ray-token"
    assert f"--address={spec.head_address}" in given["argv"]
    assert "--labels=site=cloud,provider=x" in given["argv"]
    assert {"--num-cpus=4", "--num-gpus=4", f"--memory={2 * 2**30}"} <= set(given["argv"])
    item = listed(provider)[provider_id]
    assert (item.state, item.problem) == (CloudState.RUNNING, "")


def test_no_secret_reaches_a_file_that_stays_or_a_command_line(cloud: LocalCloud) -> None:
    provider_id = launch(cloud.provider(), make_spec(cloud))

    given = wait_for_running(cloud, provider_id)

    path = cloud.instance(provider_id.removeprefix("local-"))
    content = b"".join(file.read_bytes() for file in path.iterdir())
    assert b"join-once" not in content
    assert b"ray-token" not in content
    assert "ray-token" not in " ".join(given["argv"])
    assert path.stat().st_mode & 0o077 == 0


def test_a_boot_takes_its_time_and_is_pending_meanwhile(cloud: LocalCloud) -> None:
    cloud.pool["boot_delay"] = "1h"
    provider = cloud.provider()

    provider_id = launch(provider, make_spec(cloud))

    assert listed(provider)[provider_id].state is CloudState.PENDING
    assert provider.offers()[0].boot_s > 3600


def test_an_instance_that_never_joins_runs_and_costs(cloud: LocalCloud) -> None:
    cloud.pool["fail"] = {"never_joins": True}
    provider = cloud.provider()

    provider_id = launch(provider, make_spec(cloud))

    status = cloud.instance(provider_id.removeprefix("local-")) / "status.json"
    wait_until(lambda: "starting" in status.read_text(), "the pretended start")
    item = listed(provider)[provider_id]
    assert (item.state, item.problem) == (CloudState.RUNNING, "")


def test_a_failed_start_of_ray_is_the_instances_problem(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY", "fail")
    provider = cloud.provider()

    provider_id = launch(provider, make_spec(cloud))

    problem = wait_until(lambda: listed(provider)[provider_id].problem, "the problem")
    assert problem.endswith("Version mismatch: the cluster runs Ray 0.1")
    assert listed(provider)[provider_id].state is CloudState.RUNNING  # rented, so paid for


def test_an_instance_without_its_controller_ends_with_its_lease(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud, expires_in_s=2.0))
    wait_for_running(cloud, provider_id)

    wait_until(lambda: not cloud.pids(), "the lease to end")

    item = listed(provider)[provider_id]
    assert (item.state, item.problem) == (CloudState.GONE, "")


def test_an_instance_lives_on_when_its_lease_is_extended(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    spec = make_spec(cloud, expires_in_s=2.0)
    provider_id = launch(provider, spec)

    provider.extend([provider_id], until_s=time.time() + 600)

    wait_until(lambda: time.time() > spec.expires_at_s + 1.5, "the old lease to pass")
    assert listed(provider)[provider_id].state is CloudState.RUNNING


# --- crashes ------------------------------------------------------------------------------


def test_a_machine_whose_every_process_is_killed_is_gone(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    wait_for_running(cloud, provider_id)
    for pid in cloud.pids():
        os.kill(pid, signal.SIGSTOP)

    for pid in cloud.pids():
        os.kill(pid, signal.SIGKILL)

    wait_until(lambda: not cloud.pids(), "all to be gone")
    assert listed(provider)[provider_id].state is CloudState.GONE
    provider.terminate([provider_id])  # still listed, so no error
    with pytest.raises(NotFoundError):
        provider.extend([provider_id], until_s=time.time() + 60)
    _remove_scratch(cloud, provider_id)


def test_a_machine_nobody_looks_after_says_so_and_can_be_ended(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    wait_for_running(cloud, provider_id)
    path = cloud.instance(provider_id.removeprefix("local-"))
    supervisor = json.loads((path / "pid.json").read_bytes())["pid"]
    guardian = int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])
    for number in (signal.SIGSTOP, signal.SIGKILL):
        os.kill(guardian, number)
        os.kill(supervisor, number)

    problem = wait_until(lambda: listed(provider)[provider_id].problem, "the problem")

    assert "was killed" in problem
    assert listed(provider)[provider_id].state is CloudState.RUNNING
    end(provider, provider_id)
    assert cloud.pids() == []


def test_a_record_without_a_process_is_pending_and_starts_with_its_token(
    cloud: LocalCloud,
) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    provider_id = _launch_and_die_before_start(provider, spec)

    before = listed(provider)[provider_id].state
    again = launch(provider, spec)

    assert before is CloudState.PENDING
    assert again == provider_id
    wait_for_running(cloud, provider_id)


def test_a_record_without_a_process_is_ended_for_good(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    provider_id = _launch_and_die_before_start(provider, spec)

    end(provider, provider_id)

    assert launch(provider, spec) == provider_id  # the token brings nothing back
    assert live(provider) == []
    assert cloud.pids() == []


def test_a_record_whose_lease_passed_before_its_start_is_gone(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud, expires_in_s=-1.0)

    provider_id = _launch_and_die_before_start(provider, spec)

    assert listed(provider)[provider_id].state is CloudState.GONE


def test_a_crash_at_any_line_of_a_launch_rents_one_machine(cloud: LocalCloud) -> None:
    cloud.pool |= {"stock": 1000, "boot_delay": "1h"}
    provider = cloud.provider()
    offer = provider.offers()[0]
    lines: dict[Place, None] = {}
    specs = [make_spec(cloud)]
    _traced(lines.setdefault, lambda: launch(provider, specs[0], offer=offer))
    for line in lines:
        specs.append(make_spec(cloud))
        _launch_and_die_at(line, provider, offer, specs[-1])

    for spec in specs:
        launch(provider, spec, offer=offer)

    assert len(lines) > 30
    items = provider.list_instances()
    assert sorted(i.instance_id for i in items) == sorted(s.instance_id for s in specs)
    assert {item.state for item in items} == {CloudState.PENDING}
    supervisors = {
        json.loads((cloud.instance(spec.instance_id) / "pid.json").read_bytes())["pid"]
        for spec in specs
    }
    assert len(cloud.pids()) == 2 * len(supervisors) == 2 * len(specs)


# --- stock, ids, listing ------------------------------------------------------------------


def test_stock_runs_out_and_comes_back(cloud: LocalCloud) -> None:
    cloud.pool["stock"] = 1
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    assert provider.offers()[0].stock_count == 0

    with pytest.raises(CapacityError, match="local/gpux4-cpux4/on_demand is sold out"):
        launch(provider, make_spec(cloud))

    end(provider, provider_id)
    assert provider.offers()[0].stock_count == 1
    launch(provider, make_spec(cloud))


def test_two_controllers_cannot_rent_the_last_one_twice(cloud: LocalCloud) -> None:
    cloud.pool["stock"] = 1
    first, second = cloud.provider(), cloud.provider("other-cluster")
    launch(first, make_spec(cloud))

    with pytest.raises(CapacityError):
        launch(second, make_spec(cloud, cluster_id="other-cluster"))


def test_an_id_under_another_token_is_a_conflict(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    launch(provider, spec, token="one")

    with pytest.raises(ConflictError):
        launch(provider, spec, token="two")


def test_a_second_attempt_is_another_machine(cloud: LocalCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    first = launch(provider, spec, token="one")
    end(provider, first)

    second = launch(provider, spec.model_copy(update={"attempt": 2}), token="two")

    assert second == f"{first}.2"
    assert live(provider) == [second]


@pytest.mark.parametrize(
    "changes",
    [
        {"instance_id": "../../etc"},
        {"instance_id": "a b"},
        {"cluster_id": "not-ours"},
        {"labels": {"site": "a,b=c"}},
        {"head_address": "nowhere"},
    ],
)
def test_a_spec_that_cannot_be_is_refused_for_good(
    cloud: LocalCloud, changes: dict[str, Any]
) -> None:
    spec = make_spec(cloud).model_copy(update=changes)

    with pytest.raises(InvalidRequestError):
        launch(cloud.provider(), spec, token="t")

    assert not (cloud.folder / "instances").exists() or not any(
        (cloud.folder / "instances").iterdir()
    )


def test_a_gone_instance_is_forgotten_after_a_while(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    end(provider, provider_id)
    path = cloud.instance(provider_id.removeprefix("local-"))

    (path / "gone.json").write_text(json.dumps({"at_s": time.time() - GONE_LISTED_S - 1}))

    assert listed(provider) == {}
    assert not path.exists()
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])


def test_a_damaged_record_hides_only_itself(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    broken = cloud.instance("i-broken")
    broken.mkdir()
    (broken / "record.json").write_text("{")

    assert live(provider) == [provider_id]


def test_a_state_folder_that_cannot_be_used_leaves_the_outcome_open(cloud: LocalCloud) -> None:
    cloud.folder.parent.joinpath("file").touch()
    cloud.folder = cloud.folder.parent / "file"
    provider = cloud.provider()

    with pytest.raises(TransientError):
        provider.list_instances()
    with pytest.raises(TransientError):
        provider.offers()
    cloud.folder = cloud.folder.parent / "other"


# --- configuration ------------------------------------------------------------------------


def test_the_entry_point_makes_the_provider(cloud: LocalCloud) -> None:
    entry = EntryPoint("local", "providers.local:make", "hybrid.providers")
    context = cloud.provider()._context

    provider = entry.load()("local", {"pools": [POOL | {"stock": 2}]}, context)

    assert isinstance(provider, LocalProvider)
    assert provider.offers()[0].stock_count == 2
    assert make("x", {}, context).offers() == []


def test_an_offer_has_all_that_its_pool_says() -> None:
    raw = POOL | {
        "infra": "local/lab/room-1",
        "accelerators": "A100:2",
        "cpus": 8,
        "memory": "16GiB",
        "use_spot": True,
        "max_nodes": 3,
        "rank": 1,
        "boot_delay": "20s",
        "labels": {"rack": "r7"},
    }

    (pool,) = Params.model_validate({"pools": [raw]}).pools
    offer = pool.offer("local")

    assert offer.offer_id == "local/lab/room-1/A100x2-cpux8/spot"
    assert (offer.region, offer.zone, offer.market) == ("lab", "room-1", Market.SPOT)
    assert offer.shape == {"CPU": 8, "GPU": 2, "memory": 16 * 2**30, "accelerator_type:A100": 1}
    assert (offer.accelerator, offer.gpu_count) == ("A100", 2)
    assert (offer.max_count, offer.rank, offer.boot_s) == (3, 1, 30.0)
    assert offer.labels == {"rack": "r7"}


@pytest.mark.parametrize(
    ("changes", "loc", "words"),
    [
        ({"accelerators": "A100x8"}, ("pools", 0, "accelerators"), "write TYPE:COUNT"),
        ({"boot_delay": "5"}, ("pools", 0, "boot_delay"), "it has no unit"),
        ({"usd_per_hour": 0}, ("pools", 0, "usd_per_hour"), "greater than 0"),
        ({"usd_per_hour": float("nan")}, ("pools", 0, "usd_per_hour"), ""),
        ({"stock": -1}, ("pools", 0, "stock"), "greater than or equal to 0"),
        ({"memory": "2 gigs"}, ("pools", 0, "memory"), "is not a size"),
        ({"stok": 1}, ("pools", 0, "stok"), "Extra inputs are not permitted"),
        ({"fail": {"never_join": True}}, ("pools", 0, "fail", "never_join"), "Extra inputs"),
        ({"labels": {"site": "x"}}, ("pools", 0, "labels"), "label site is set by this program"),
    ],
)
def test_a_wrong_pool_is_refused_at_its_place(
    changes: dict[str, object], loc: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Params.model_validate({"pools": [POOL | changes]})

    (error,) = caught.value.errors()
    assert error["loc"] == loc
    assert words in error["msg"]


def test_two_pools_of_the_same_kind_need_names_of_their_own() -> None:
    twice = [POOL, POOL | {"usd_per_hour": 3.0}]

    with pytest.raises(ValidationError, match="pools 0 and 1 are the same kind"):
        Params.model_validate({"pools": twice})
    named = Params.model_validate({"pools": [POOL, POOL | {"instance_type": "dear"}]})

    assert [pool.offer("local").instance_type for pool in named.pools] == ["gpux4-cpux4", "dear"]


def test_the_provider_imports_no_part_of_hybrid_but_core() -> None:
    code = (
        "import sys, providers.local\n"
        "print(sorted(n for n in sys.modules if n.startswith('hybrid.') "
        "and not n.startswith('hybrid.core')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd()
    )

    assert done.stdout.strip() == "[]"


# --- crashing on purpose ------------------------------------------------------------------


def _launch_and_die_before_start(provider: LocalProvider, spec: LaunchSpec) -> str:
    """Launch in a process that is killed between its record and the start of the node."""
    offer = provider.offers()[0]
    pid = os.fork()
    if pid == 0:

        def die(_: object) -> NoReturn:
            os._exit(9)

        Machine.start = die  # type: ignore[assignment, method-assign]
        launch(provider, spec, offer=offer)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    return f"local-{spec.instance_id}"


Place: TypeAlias = tuple[str, int]

# The others only compute or read.
_STEPS_OF_A_LAUNCH = {"launch", "_rent", "locked", "create", "_drop_drafts", "start", "_call"}


def _traced(meet: Callable[[Place], object], act: Callable[[], object]) -> None:
    """Act, and meet every line of this provider that could matter right before it runs."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if "providers/local" not in code.co_filename or code.co_name not in _STEPS_OF_A_LAUNCH:
            return None
        if event == "line":
            meet((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)


def _launch_and_die_at(
    line: Place, provider: LocalProvider, offer: Offer, spec: LaunchSpec
) -> None:
    """Launch in a process that is killed right before a line."""
    pid = os.fork()
    if pid == 0:
        _traced(
            lambda place: os._exit(9) if place == line else None,
            lambda: launch(provider, spec, offer=offer),
        )
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, line


def _remove_scratch(cloud: LocalCloud, provider_id: str) -> None:
    """Do what a machine does not do that was killed whole."""
    stop(cloud.instance(provider_id.removeprefix("local-")))

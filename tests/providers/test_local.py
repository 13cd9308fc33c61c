"""The local cloud: the port's contract, and what is its own. Real processes, fake Ray."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from hybrid.core.errors import (
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    TransientError,
)
from hybrid.core.models import CloudState
from providers.local.provider import GONE_LISTED_S
from tests.node.box import wait_until
from tests.providers.contract import ProviderContract, end, launch, listed, live, make_spec
from tests.providers.local_cloud import LocalCloud, wait_for_running

pytestmark = pytest.mark.slow


class TestContract(ProviderContract):
    """Every promise of the port."""


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
    assert (item.state, item.problem) == (CloudState.GONE, "lease ended")


def test_an_instance_lives_on_when_its_lease_is_extended(cloud: LocalCloud) -> None:
    provider = cloud.provider()
    spec = make_spec(cloud, expires_in_s=2.0)
    provider_id = launch(provider, spec)

    provider.extend([provider_id], until_s=time.time() + 600)

    wait_until(lambda: time.time() > spec.expires_at_s + 1.5, "the old lease to pass")
    assert listed(provider)[provider_id].state is CloudState.RUNNING


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

"""Instances on Baidu AI Cloud: whose they are, what they are, and their end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.core.errors import (
    NotFoundError,
    ThrottledError,
    TransientError,
)
from hybrid.core.models import CloudState
from tests.emulators.baidu import BaiduEmulator, Fault
from tests.emulators.baidu.cloud import Instance
from tests.providers.baidu_cloud import (
    EXPIRY,
    RELEASE,
    SPEC,
    BaiduCloud,
    baidu_cloud,
    bcc_id,
)
from tests.providers.contract import end, launch, listed, live, make_spec


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    with baidu_cloud(monkeypatch) as made:
        yield made


def test_a_list_of_many_pages_is_read_to_its_end(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    cloud.bcc.page_size = 2
    ids = {launch(provider, make_spec(cloud)) for _ in range(5)}
    cloud.emulator.requests.clear()

    assert set(listed(provider)) == ids
    assert len(cloud.emulator.requests) == 3


@pytest.mark.parametrize("item", [{}, {"id": "i-1"}, {"id": 5, "status": "Running"}])
def test_an_entry_that_cannot_be_read_makes_the_list_unknown(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch, item: dict[str, Any]
) -> None:
    monkeypatch.setattr(cloud.bcc, "list", lambda query: {"instances": [item]})

    with pytest.raises(TransientError, match="no id or no status"):
        cloud.provider().list_instances()


def test_a_page_that_leads_nowhere_is_unknown_and_not_the_end(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud.bcc, "list", lambda query: {"instances": [], "isTruncated": True})

    with pytest.raises(TransientError, match="more follow"):
        cloud.provider().list_instances()


def put_instance(cloud: BaiduCloud, tags: dict[str, str]) -> str:
    """Put a machine of somebody's into the account."""
    name = f"i-{len(cloud.bcc.instances)}foreign"
    body = {
        "spec": SPEC,
        "imageId": "m-gpu1",
        "billing": {"paymentTiming": "Postpaid"},
        "tags": [{"tagKey": key, "tagValue": value} for key, value in tags.items()],
    }
    cloud.bcc.instances[name] = Instance(name, body, time.time())
    return f"bj/{name}"


def test_machines_with_similar_tags_are_never_touched(cloud: BaiduCloud) -> None:
    cloud.bcc.is_filter_loose = True
    ours = cloud.cluster_id
    foreign = [
        put_instance(cloud, tags)
        for tags in (
            {"hybrid-cluster": f"{ours}2", "hybrid-instance": "i-1"},
            {"hybrid-cluster": ours.upper(), "hybrid-instance": "i-1"},
            {"hybrid-clusters": ours, "hybrid-instance": "i-1"},
            {"hybrid-cluster": ours},  # somebody copied a tag
            {},
        )
    ]
    provider = cloud.provider()
    mine = launch(provider, make_spec(cloud))

    assert list(listed(provider)) == [mine]
    for act in (provider.terminate, lambda ids: provider.extend(ids, until_s=time.time() + 60)):
        with pytest.raises(NotFoundError):
            act(foreign)
        act([mine, *foreign])
    changed = [call.path for call in cloud.emulator.calls("(PUT|POST) /v2/instance/.*")]
    assert {path.rpartition("/")[2] for path in changed} == {bcc_id(mine)}


def test_an_instance_deleted_by_hand_is_not_found(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.delete_by_hand(bcc_id(provider_id))

    assert listed(provider) == {}
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])


@pytest.mark.parametrize("code", ["NoSuchObject", "CDS.NotExist"])
def test_only_the_question_for_an_instance_proves_its_end(cloud: BaiduCloud, code: str) -> None:
    """What does not exist when it is released may be a disk of it."""
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.faults.append(Fault("refuse", status=404, code=code, call=RELEASE))

    provider.terminate([provider_id])  # no NotFoundError: it lives

    assert live(provider) == [provider_id]
    cloud.bcc.delete_by_hand(bcc_id(provider_id))
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])


def test_a_list_by_ids_that_fails_is_trouble_and_not_absence(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    ids = [launch(provider, make_spec(cloud)) for _ in range(2)]
    cloud.emulator.refuse("throttled", call="GET /v2/instance")

    with pytest.raises(ThrottledError):
        provider.terminate(ids)


def test_an_instance_in_the_recycle_bin_is_gone(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.recycle_by_hand(bcc_id(provider_id))

    assert listed(provider)[provider_id].state is CloudState.GONE
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])


def test_we_never_use_the_recycle_bin(cloud: BaiduCloud) -> None:
    """Not even for an instance without an expiry, which could go there."""
    provider, spec = cloud.provider(), make_spec(cloud)
    cloud.emulator.faults.append(Fault("drop", call=EXPIRY))
    with pytest.raises(TransientError):
        launch(provider, spec)

    end(provider, *live(provider))

    (call,) = cloud.emulator.calls("POST /v2/instance/.*")
    assert call.body["bccRecycleFlag"] is False
    assert call.body["relatedReleaseFlag"] is True


@pytest.mark.parametrize("status", ["Stopped", "Error", "Expired"])
def test_an_instance_that_does_not_run_has_a_problem_and_can_be_ended(
    cloud: BaiduCloud, status: str
) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.instances[bcc_id(provider_id)].status = status

    item = listed(provider)[provider_id]
    end(provider, provider_id)

    assert item.state is CloudState.STOPPING
    assert item.problem
    assert live(provider) == []


@pytest.mark.parametrize("status", ["Scaling", "ImageProcessing", "SomethingNew"])
def test_a_status_of_any_other_name_is_a_machine_that_costs(cloud: BaiduCloud, status: str) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.bcc.instances[bcc_id(provider_id)].status = status

    assert listed(provider)[provider_id].state is CloudState.RUNNING


def test_an_instance_that_is_being_created_is_ended_later(cloud: BaiduCloud) -> None:
    cloud.bcc.boot_s = 60
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    with pytest.raises(TransientError) as caught:
        provider.terminate([provider_id])
    assert caught.value.code == "Instance.ReleaseWhileCreating"

    cloud.bcc.ahead_s = 61
    end(provider, provider_id)

    assert live(provider) == []


def test_one_refusal_keeps_no_other_instance_alive(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    ids = sorted(launch(provider, make_spec(cloud)) for _ in range(3))
    cloud.bcc.instances[bcc_id(ids[0])].is_protected = True

    with pytest.raises(TransientError):
        provider.terminate(ids)

    states = [listed(provider)[i].state for i in ids]
    assert states == [CloudState.RUNNING, CloudState.STOPPING, CloudState.STOPPING]


def test_what_the_list_hides_is_asked_for_by_name(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    ids = [launch(provider, make_spec(cloud)) for _ in range(3)]
    cloud.bcc.instances[bcc_id(ids[1])].hidden_lists = 1

    provider.extend(ids, until_s=time.time() + 7200)

    expiries = [item.expires_at_s for item in listed(provider).values()]
    assert len(expiries) == 3
    assert all(expiry and expiry > time.time() + 7000 for expiry in expiries)


def test_a_hundred_leases_are_renewed_with_one_question(cloud: BaiduCloud) -> None:
    provider = cloud.provider()
    cloud.bcc.quota = 200
    ids = [launch(provider, make_spec(cloud)) for _ in range(101)]
    cloud.emulator.requests.clear()

    provider.extend(ids, until_s=time.time() + 7200)

    assert len(cloud.emulator.calls("GET .*")) == 2  # 100 ids fit into one
    assert len(cloud.emulator.calls("PUT .*")) == 101


def test_an_instance_is_found_in_its_region_after_its_pool_left_the_file(
    cloud: BaiduCloud,
) -> None:
    provider_id = launch(cloud.provider(), make_spec(cloud))
    cloud.pools[0]["infra"] = "baidu/gz/cn-gz-a"
    elsewhere = cloud.provider()

    elsewhere.extend([provider_id], until_s=time.time() + 60)
    elsewhere.terminate([provider_id])

    cloud.bcc.ahead_s = 1
    assert cloud.bcc.living() == []


def test_regions_are_listed_once_each_and_one_that_fails_fails_the_list(
    cloud: BaiduCloud,
) -> None:
    other = BaiduEmulator()
    cloud.account["endpoints"] = {"bj": cloud.emulator.url, "gz": other.url}
    cloud.pools += [
        cloud.pools[0] | {"infra": "baidu/bj/cn-bj-a"},
        cloud.pools[0] | {"infra": "baidu/gz/cn-gz-a"},
    ]
    provider = cloud.provider()
    try:
        launch(provider, make_spec(cloud))
        cloud.emulator.requests.clear()

        assert len(provider.list_instances()) == 1
        assert (len(cloud.emulator.requests), len(other.requests)) == (1, 1)
        other.faults.append(Fault("html"))
        with pytest.raises(TransientError):
            provider.list_instances()
    finally:
        other.stop()


def test_an_instance_without_a_date_is_young(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An age that is not known must not read as a great age: orphans end by it."""
    provider = cloud.provider()
    launch(provider, make_spec(cloud))
    true_list = cloud.bcc.list

    def without_date(query: Any) -> Any:
        answer = true_list(query)
        for item in answer["instances"]:
            item["createTime"] = "soon"
        return answer

    monkeypatch.setattr(cloud.bcc, "list", without_date)

    (item,) = provider.list_instances()
    assert item.launched_at_s == pytest.approx(time.time(), abs=60)

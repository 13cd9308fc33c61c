"""Google Cloud: what becomes of a launch that was accepted, and whose a name is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.core.errors import (
    CapacityError,
    ConflictError,
    InvalidRequestError,
    PendingError,
    ProviderError,
    QuotaError,
    TransientError,
)
from hybrid.core.models import CloudState
from tests.providers.contract import launch, listed, live, make_spec
from tests.providers.gcp_cloud import GcpCloud, gcp_cloud

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


def instance(cloud: GcpCloud) -> dict[str, Any]:
    """Return the one machine that exists, as Google has it."""
    (only,) = cloud.emulator.cloud.instances.values()
    return only


# --- accepted, and then -------------------------------------------------------------------


def test_a_launch_that_takes_too_long_is_the_same_machine_later(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.provision_s = 60.0
    provider, spec = cloud.provider(launch_wait="100ms"), make_spec(cloud)
    with pytest.raises(PendingError, match=r"still at work after 0 s|same token"):
        launch(provider, spec)
    before = listed(provider)

    cloud.later(60)
    provider_id = launch(provider, spec)

    assert [item.state for item in before.values()] == [CloudState.PENDING]
    assert live(provider) == [provider_id] == list(before)
    assert len(cloud.emulator.cloud.operations.by_name) == 1


def test_a_launch_may_be_asked_for_without_any_waiting(cloud: GcpCloud) -> None:
    provider, spec = cloud.provider(launch_wait="0s"), make_spec(cloud)
    with pytest.raises(TransientError):
        launch(provider, spec)

    cloud.later(60)

    assert launch(provider, spec) in live(provider)
    assert cloud.calls("zoneOperations.wait") == 0


def test_no_stock_is_said_only_when_nothing_exists(cloud: GcpCloud) -> None:
    cloud.sell_out()
    provider = cloud.provider()

    with pytest.raises(CapacityError, match="does not have enough resources") as caught:
        launch(provider, make_spec(cloud))

    assert caught.value.code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert [record.method for record in cloud.emulator.api.log][-1] == "instances.get"
    assert cloud.names() == []


def test_a_failure_without_http_fields_is_seen_all_the_same(cloud: GcpCloud) -> None:
    """`Operation.result()` of the SDK takes this for a success."""
    cloud.emulator.faults.add(code="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")

    with pytest.raises(CapacityError):
        launch(cloud.provider(), make_spec(cloud))


def test_a_stockout_that_comes_after_the_wait_is_told_with_the_same_token(cloud: GcpCloud) -> None:
    cloud.emulator.faults.add(code="ZONE_RESOURCE_POOL_EXHAUSTED", takes_s=60.0)
    provider, spec = cloud.provider(launch_wait="100ms"), make_spec(cloud)
    with pytest.raises(TransientError):
        launch(provider, spec)
    cloud.later(60)

    with pytest.raises(CapacityError):
        launch(provider, spec)

    assert cloud.names() == []
    assert cloud.calls("instances.insert") == 2
    assert listed(provider) == {}


def test_the_list_says_why_a_machine_never_came(cloud: GcpCloud) -> None:
    """The controller finds it in the list while it is made, and asks with its token no more."""
    cloud.emulator.faults.add(code="ZONE_RESOURCE_POOL_EXHAUSTED", takes_s=60.0)
    provider, spec = cloud.provider(launch_wait="100ms"), make_spec(cloud)
    with pytest.raises(TransientError):
        launch(provider, spec)
    (before,) = provider.list_instances()
    cloud.later(60)

    (after,) = provider.list_instances()

    assert before.state is CloudState.PENDING
    assert after.provider_id == before.provider_id
    assert (after.state, after.instance_id) == (CloudState.GONE, spec.instance_id)
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in after.problem
    provider.list_instances()
    assert cloud.calls("zoneOperations.get") == 1  # asked once


def test_a_machine_that_the_list_lacks_is_not_gone_while_it_is_made(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.is_listed_early = False
    cloud.emulator.cloud.provision_s = 60.0
    cloud.emulator.faults.add(code="ZONE_RESOURCE_POOL_EXHAUSTED", takes_s=60.0)
    provider = cloud.provider(launch_wait="50ms")
    with pytest.raises(TransientError):
        launch(provider, make_spec(cloud))

    assert provider.list_instances() == []


def test_a_failed_launch_that_left_a_machine_is_not_gone(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.list_lag_s = 3_600.0
    cloud.emulator.faults.add(code="INTERNAL_ERROR", takes_s=60.0, leaves=True)
    provider, spec = cloud.provider(launch_wait="50ms"), make_spec(cloud)
    with pytest.raises(TransientError):
        launch(provider, spec)
    cloud.later(60)

    assert provider.list_instances() == []  # there, but in no list: unknown, so nothing is said
    with pytest.raises(CapacityError):
        launch(cloud.provider(), spec)
    assert cloud.names() == []
    (item,) = provider.list_instances()
    assert item.state is CloudState.GONE


def test_a_half_made_machine_is_deleted_before_a_launch_counts_as_refused(cloud: GcpCloud) -> None:
    cloud.emulator.faults.add(code="INTERNAL_ERROR", leaves=True)
    provider = cloud.provider()

    with pytest.raises(CapacityError, match="INTERNAL_ERROR"):
        launch(provider, make_spec(cloud))

    assert cloud.names() == []
    assert cloud.calls("instances.delete") == 1


def test_a_half_made_machine_that_does_not_end_in_time_leaves_it_open(cloud: GcpCloud) -> None:
    cloud.emulator.faults.add(code="ZONE_RESOURCE_POOL_EXHAUSTED", leaves=True)
    cloud.emulator.cloud.delete_s = 60.0
    provider, spec = cloud.provider(launch_wait="1s"), make_spec(cloud)
    with pytest.raises(TransientError, match="being deleted"):
        launch(provider, spec)
    with pytest.raises(TransientError):
        launch(provider, spec)
    cloud.later(60)

    with pytest.raises(CapacityError):
        launch(provider, spec)

    assert cloud.names() == []


@pytest.mark.parametrize(
    "fault",
    [
        {"method": "instances.get", "status": 503},
        {"method": "instances.delete", "status": 403},
        {"method": "instances.delete", "code": "INTERNAL_ERROR"},
    ],
    ids=["cannot-look", "may-not-delete", "delete-fails-late"],
)
def test_a_half_made_machine_that_cannot_be_ended_leaves_it_open(
    cloud: GcpCloud, fault: dict[str, Any]
) -> None:
    cloud.emulator.faults.add(code="INTERNAL_ERROR", leaves=True)
    cloud.emulator.faults.add(**fault)
    provider, spec = cloud.provider(), make_spec(cloud)

    with pytest.raises(TransientError):
        launch(provider, spec)

    assert len(cloud.names()) == 1
    with pytest.raises(CapacityError):
        launch(provider, spec)
    assert cloud.names() == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", CapacityError),
        ("STOCKOUT", CapacityError),
        ("QUOTA_EXCEEDED", QuotaError),
        ("IP_SPACE_EXHAUSTED", QuotaError),
        ("PERMISSIONS_ERROR", ProviderError),
        ("RESOURCE_NOT_FOUND", InvalidRequestError),
        ("INVALID_USAGE", InvalidRequestError),
        # Its token is used up, so to ask again would only repeat the failure.
        ("INTERNAL_ERROR", CapacityError),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", CapacityError),
        ("A_CODE_OF_TOMORROW", CapacityError),
    ],
)
def test_an_accepted_launch_that_failed_is_never_to_be_tried_again_as_it_is(
    cloud: GcpCloud, code: str, kind: type[ProviderError]
) -> None:
    cloud.emulator.faults.add(code=code, status=503)
    provider, spec = cloud.provider(), make_spec(cloud)

    with pytest.raises(kind) as first:
        launch(provider, spec)
    with pytest.raises(kind) as again:
        launch(provider, spec)

    assert not isinstance(first.value, TransientError)
    assert first.value.code == again.value.code == code
    assert cloud.names() == []


def test_quota_zero_is_named_with_its_metric(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.quotas["us-central1", "NVIDIA_L4_GPUS"] = 0

    with pytest.raises(QuotaError, match=r"NVIDIA_L4_GPUS.*Limit: 0\.0.*higher quota"):
        launch(cloud.provider(), make_spec(cloud))

    assert cloud.names() == []


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 503},
        {"status": 403},
        {"status": 404},
        {"status": 429},
        {"status": 502, "is_html": True},
        {"is_dropped": True},
    ],
    ids=str,
)
def test_trouble_after_the_acceptance_leaves_the_outcome_open(
    cloud: GcpCloud, fault: dict[str, Any]
) -> None:
    cloud.emulator.faults.add(method="zoneOperations.wait", **fault)
    provider, spec = cloud.provider(), make_spec(cloud)

    with pytest.raises(TransientError):
        launch(provider, spec)

    assert [launch(provider, spec)] == live(provider)


def test_a_cloud_that_does_not_wait_is_asked_three_times_at_most(cloud: GcpCloud) -> None:
    cloud.emulator.api.wait_s = 0.0
    cloud.emulator.cloud.provision_s = 60.0

    with pytest.raises(TransientError):
        launch(cloud.provider(), make_spec(cloud))

    assert cloud.calls("zoneOperations.wait") == 3


# --- tokens and names ---------------------------------------------------------------------


def test_a_request_id_that_google_forgot_still_finds_its_machine(cloud: GcpCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    first = launch(provider, spec)
    cloud.emulator.cloud.operations.forget_requests()

    again = launch(provider, spec)

    assert again == first
    assert live(provider) == [first]


def test_an_id_under_another_token_is_a_conflict(cloud: GcpCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    first = launch(provider, spec, token="one")

    with pytest.raises(ConflictError, match="from another launch"):
        launch(provider, spec, token="two")

    assert live(provider) == [first]


def test_a_strangers_machine_under_our_name_is_a_conflict_and_stays(cloud: GcpCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    launch(provider, spec)
    cloud.emulator.cloud.operations.forget_requests()
    instance(cloud)["labels"] = {"owner": "somebody"}

    with pytest.raises(ConflictError):
        launch(provider, spec)

    assert len(cloud.names()) == 1
    assert provider.list_instances() == []


def test_a_name_that_is_taken_by_what_cannot_be_seen_leaves_it_open(cloud: GcpCloud) -> None:
    provider, spec = cloud.provider(), make_spec(cloud)
    launch(provider, spec)
    cloud.emulator.cloud.operations.forget_requests()
    cloud.emulator.faults.add(method="instances.get", status=403)

    with pytest.raises(TransientError):
        launch(provider, spec)

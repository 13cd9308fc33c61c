"""Google Cloud: what becomes of a gang that was accepted, and whose the names are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    ProviderError,
    QuotaError,
    TransientError,
)
from hybrid.core.models import CloudState
from tests.emulators.gcp import PROJECT
from tests.providers.contract import launch, listed, live, make_spec
from tests.providers.gang_contract import launch_gang, make_gang
from tests.providers.gcp_cloud import ZONE, GcpCloud, gcp_cloud, instances, name_of, take_away

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


# --- accepted, and then -------------------------------------------------------------------


def test_a_gang_that_takes_too_long_is_the_same_machines_later(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.provision_s = 60.0
    provider, specs = cloud.provider(launch_wait="100ms"), make_gang(cloud)
    with pytest.raises(TransientError, match="same token"):
        launch_gang(provider, specs)
    before = listed(provider)

    cloud.later(60)
    provider_ids = launch_gang(provider, specs)

    assert {item.state for item in before.values()} == {CloudState.PENDING}
    assert sorted(live(provider)) == sorted(provider_ids.values()) == sorted(before)
    assert cloud.calls("instances.bulkInsert") == 2
    assert len(cloud.emulator.cloud.operations.of("bulkInsert")) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("VM_MIN_COUNT_NOT_REACHED", CapacityError),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", CapacityError),
        ("QUOTA_EXCEEDED", QuotaError),
        ("INTERNAL_ERROR", CapacityError),
        ("PERMISSIONS_ERROR", AuthError),
        ("A_CODE_OF_TOMORROW", CapacityError),
    ],
)
def test_a_gang_that_failed_late_says_why_and_leaves_nothing(
    cloud: GcpCloud, code: str, kind: type[ProviderError]
) -> None:
    cloud.emulator.faults.add(method="instances.bulkInsert", code=code)
    provider, specs = cloud.provider(), make_gang(cloud)

    with pytest.raises(kind) as first:
        launch_gang(provider, specs)
    with pytest.raises(kind) as again:
        launch_gang(provider, specs)

    assert first.value.code == again.value.code == code
    assert cloud.calls("instances.delete") == 0  # Google has taken them back
    assert cloud.calls("instances.get") == 6  # and each name was looked at, both times
    assert cloud.names() == []
    assert listed(provider) == {}


@pytest.mark.parametrize("left", [1, 2, 3])
def test_what_is_left_of_a_failed_gang_is_deleted_before_it_counts_as_refused(
    cloud: GcpCloud, left: int
) -> None:
    cloud.emulator.faults.add(
        method="instances.bulkInsert", code="ZONE_RESOURCE_POOL_EXHAUSTED", leaves=left
    )
    provider = cloud.provider()

    with pytest.raises(CapacityError, match="injected"):
        launch_gang(provider, make_gang(cloud))

    assert cloud.names() == []
    # The machine that could not be had was never there.
    assert cloud.calls("instances.delete") == min(left, 2)


def test_what_is_left_and_does_not_end_in_time_leaves_it_open(cloud: GcpCloud) -> None:
    cloud.emulator.faults.add(method="instances.bulkInsert", code="INTERNAL_ERROR", leaves=2)
    cloud.emulator.cloud.delete_s = 60.0
    provider, specs = cloud.provider(launch_wait="500ms"), make_gang(cloud)
    with pytest.raises(TransientError, match="not ended yet"):
        launch_gang(provider, specs)
    with pytest.raises(TransientError):
        launch_gang(provider, specs)
    cloud.later(60)

    with pytest.raises(CapacityError):
        launch_gang(provider, specs)

    assert cloud.names() == []
    assert listed(provider) == {}


@pytest.mark.parametrize(
    "fault",
    [
        {"method": "instances.get", "status": 503},
        {"method": "instances.delete", "status": 403},
        {"method": "instances.delete", "code": "INTERNAL_ERROR"},
    ],
    ids=["cannot-look", "may-not-delete", "delete-fails-late"],
)
def test_what_is_left_and_cannot_be_ended_leaves_it_open(
    cloud: GcpCloud, fault: dict[str, Any]
) -> None:
    cloud.emulator.faults.add(method="instances.bulkInsert", code="INTERNAL_ERROR", leaves=2)
    cloud.emulator.faults.add(**fault)
    provider, specs = cloud.provider(), make_gang(cloud)

    with pytest.raises(TransientError):
        launch_gang(provider, specs)

    assert cloud.names()  # one trouble did not keep the others from being ended
    with pytest.raises(CapacityError):
        launch_gang(provider, specs)
    assert cloud.names() == []


@pytest.mark.parametrize(
    "fault", [{"status": 503}, {"status": 404}, {"status": 429}, {"is_dropped": True}], ids=str
)
def test_trouble_after_the_acceptance_leaves_the_outcome_open(
    cloud: GcpCloud, fault: dict[str, Any]
) -> None:
    cloud.emulator.faults.add(method="zoneOperations.wait", **fault)
    provider, specs = cloud.provider(), make_gang(cloud)

    with pytest.raises(TransientError):
        launch_gang(provider, specs)

    assert sorted(launch_gang(provider, specs).values()) == sorted(live(provider))


def test_the_list_says_of_each_why_it_never_came_and_asks_once(cloud: GcpCloud) -> None:
    cloud.emulator.faults.add(
        method="instances.bulkInsert", code="ZONE_RESOURCE_POOL_EXHAUSTED", takes_s=60.0
    )
    provider, specs = cloud.provider(launch_wait="100ms"), make_gang(cloud)
    with pytest.raises(TransientError):
        launch_gang(provider, specs)
    before = listed(provider)
    cloud.later(60)

    after = listed(provider)

    assert {item.state for item in before.values()} == {CloudState.PENDING}
    assert after.keys() == before.keys()
    for item in after.values():
        assert item.state is CloudState.GONE
        assert "ZONE_RESOURCE_POOL_EXHAUSTED" in item.problem
    listed(provider)
    assert cloud.calls("zoneOperations.get") == 1


# --- tokens and names ---------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False], ids=["refused", "accepted"])
def test_a_request_id_that_google_forgot_still_finds_its_gang(
    cloud: GcpCloud, at_once: bool
) -> None:
    cloud.emulator.cloud.refuses_taken_names = at_once
    provider, specs = cloud.provider(), make_gang(cloud)
    first = launch_gang(provider, specs)
    cloud.emulator.cloud.operations.forget_requests()
    cloud.later(10)

    again = launch_gang(provider, specs)

    assert again == first
    assert sorted(live(provider)) == sorted(first.values())
    assert cloud.calls("instances.delete") == 0


@pytest.mark.parametrize("at_once", [True, False], ids=["refused", "accepted"])
def test_a_part_that_an_earlier_call_made_is_no_success_and_is_not_touched(
    cloud: GcpCloud, at_once: bool
) -> None:
    """Jobs may run there, so only the controller can decide what becomes of it."""
    cloud.emulator.cloud.refuses_taken_names = at_once
    provider, specs = cloud.provider(), make_gang(cloud)
    gone, *kept = launch_gang(provider, specs).values()
    cloud.emulator.cloud.operations.forget_requests()
    take_away(cloud, gone)
    cloud.later(10)

    with pytest.raises(TransientError, match="2 of 3 exist, from an earlier call"):
        launch_gang(provider, specs)

    assert sorted(live(provider)) == sorted(kept)
    assert cloud.calls("instances.delete") == 0


def test_a_gang_under_another_token_is_a_conflict(cloud: GcpCloud) -> None:
    provider, specs = cloud.provider(), make_gang(cloud)
    first = launch_gang(provider, specs, token="one")

    with pytest.raises(ConflictError, match="from another launch"):
        launch_gang(provider, specs, token="two")

    assert sorted(live(provider)) == sorted(first.values())


@pytest.mark.parametrize("at_once", [True, False], ids=["refused", "accepted"])
def test_a_strangers_machine_under_one_of_the_names_stays_and_the_rest_is_not_rented(
    cloud: GcpCloud, at_once: bool
) -> None:
    cloud.emulator.cloud.refuses_taken_names = at_once
    provider, specs = cloud.provider(), make_gang(cloud)
    launch(provider, make_spec(cloud))
    ((key, theirs),) = cloud.emulator.cloud.instances.items()
    del cloud.emulator.cloud.instances[key]
    theirs["labels"] = {"owner": "somebody"}
    theirs["name"] = name_of(specs[1])
    theirs["selfLink"] = theirs["selfLink"].replace(key[2], theirs["name"])
    cloud.emulator.cloud.instances[key[0], key[1], theirs["name"]] = theirs
    cloud.emulator.cloud._made_at_s[key[0], key[1], theirs["name"]] = 0.0

    with pytest.raises(ConflictError):
        launch_gang(provider, specs)

    assert cloud.names() == [name_of(specs[1])]
    assert listed(provider) == {}


@pytest.mark.parametrize(
    ("label", "value"),
    [("hybrid-cluster", "another"), ("hybrid-attempt", "2"), ("hybrid-gang", None)],
)
def test_a_member_whose_labels_were_changed_is_not_ours(
    cloud: GcpCloud, label: str, value: str | None
) -> None:
    provider, specs = cloud.provider(), make_gang(cloud, 2)
    first = launch_gang(provider, specs)
    labels = instances(cloud)[0]["labels"]
    if value is None:
        del labels[label]
    else:
        labels[label] = value

    assert len(live(provider)) == 1
    assert set(live(provider)) < set(first.values())


def test_a_copy_of_a_member_is_not_ours(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    first = launch_gang(provider, make_gang(cloud, 2))
    theirs = dict(instances(cloud)[0])
    theirs["name"] += "-1"
    theirs["selfLink"] += "-1"
    cloud.emulator.cloud.instances[PROJECT, ZONE, theirs["name"]] = theirs
    cloud.emulator.cloud._made_at_s[PROJECT, ZONE, theirs["name"]] = 0.0

    assert sorted(live(provider)) == sorted(first.values())

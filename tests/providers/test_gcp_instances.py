"""Google Cloud: listing, ending and extending instances, and those of other people."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import AuthError, NotFoundError, ProviderError, TransientError
from hybrid.core.models import CloudState
from providers.gcp.naming import Place
from tests.emulators.gcp import PROJECT
from tests.emulators.gcp.cloud import Key
from tests.providers.contract import end, launch, listed, live, make_spec
from tests.providers.gcp_cloud import TYPE, ZONE, GcpCloud, gcp_cloud

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud() -> Iterator[GcpCloud]:
    with gcp_cloud() as made:
        yield made


def key_of(provider_id: str) -> Key:
    place = Place.of(provider_id)
    assert place is not None
    return place.project, place.zone, place.name


def wait_for(condition: Any, what: str) -> None:
    end_s = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end_s, what
        time.sleep(0.01)


# --- listing ------------------------------------------------------------------------------


def test_a_list_takes_one_call_a_page_over_all_zones(cloud: GcpCloud) -> None:
    cloud.pools.append(cloud.pools[0] | {"infra": "gcp/us-east1/us-east1-b"})
    provider = cloud.provider()
    offers = provider.offers()
    ids = {launch(provider, make_spec(cloud), offer=offers[n % 2]) for n in range(7)}
    cloud.emulator.api.page_size = 3

    items = listed(provider)

    assert set(items) == ids
    assert cloud.calls("instances.aggregatedList") == 3


def test_a_zone_that_cannot_be_reached_makes_the_list_unknown(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    launch(provider, make_spec(cloud))
    cloud.emulator.cloud.unreachable = {"us-east1-b"}

    with pytest.raises(TransientError, match="us-east1-b"):
        provider.list_instances()


def test_a_list_that_lacks_a_zone_is_no_list(cloud: GcpCloud) -> None:
    """Google may answer in part, with a warning for what is missing."""
    provider = cloud.provider()
    launch(provider, make_spec(cloud))
    cloud.emulator.api.partial = {"us-east1-b"}

    with pytest.raises(TransientError, match="the list lacks zones/us-east1-b"):
        provider.list_instances()


def test_an_instance_that_no_list_has_yet_can_be_ended_and_extended(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.list_lag_s = 3_600.0
    provider = cloud.provider()
    first, second = (launch(provider, make_spec(cloud)) for _ in range(2))
    assert listed(provider) == {}

    provider.extend([first, second], until_s=time.time() + 60)
    provider.terminate([first, second])

    wait_for(lambda: _settled(cloud) == [], "both to end")


def _settled(cloud: GcpCloud) -> list[str]:
    with cloud.emulator.cloud.lock:
        cloud.emulator.cloud.settle()
    return cloud.names()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("PROVISIONING", CloudState.PENDING),
        ("STAGING", CloudState.PENDING),
        ("RUNNING", CloudState.RUNNING),
        ("REPAIRING", CloudState.RUNNING),
        ("PENDING_STOP", CloudState.STOPPING),
        ("STOPPING", CloudState.STOPPING),
        ("DEPROVISIONING", CloudState.STOPPING),
        ("SUSPENDED", CloudState.STOPPING),
        ("TERMINATED", CloudState.STOPPING),
    ],
)
def test_every_status_is_what_it_means_for_us(
    cloud: GcpCloud, status: str, state: CloudState
) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.cloud.instances[key_of(provider_id)]["status"] = status

    assert listed(provider)[provider_id].state is state


def test_a_stopped_instance_is_not_gone_and_says_so(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    with cloud.emulator.cloud.lock:
        cloud.emulator.cloud.stop(key_of(provider_id))
    wait_for(lambda: listed(provider)[provider_id].problem, "it to have stopped")

    item = listed(provider)[provider_id]

    assert item.state is CloudState.STOPPING  # its disk is paid for
    assert "it was stopped" in item.problem
    end(provider, provider_id)
    assert cloud.names() == []


def test_an_instance_deleted_in_the_console_is_not_found(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    del cloud.emulator.cloud.instances[key_of(provider_id)]

    assert listed(provider) == {}
    with pytest.raises(NotFoundError):
        provider.terminate([provider_id])
    with pytest.raises(NotFoundError):
        provider.extend([provider_id], until_s=time.time() + 60)


# --- other people's -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {"hybrid-cluster": "{ours}2"}},
        {"labels": {"hybrid-cluster": "x{ours}"}},
        {"labels": {"hybrid_cluster": "{ours}"}},
        {"labels": {"hybrid-instance": "i-1"}},
        {"labels": {"hybrid-cluster": "{ours}"}},
        {"labels": {"hybrid-cluster": "{ours}", "hybrid-instance": "i-1", "hybrid-attempt": "1"}},
        {"name": "a-copy-made-in-the-console"},
    ],
    ids=["longer", "prefixed", "other-key", "no-cluster", "no-instance", "other-name", "copy"],
)
def test_a_machine_that_only_looks_like_ours_is_never_touched(
    cloud: GcpCloud, changes: dict[str, Any]
) -> None:
    provider = cloud.provider()
    ours = launch(provider, make_spec(cloud))
    _, _, name = key_of(ours)
    theirs = deepcopy(cloud.emulator.cloud.instances[key_of(ours)])
    theirs["name"] = changes.get("name", f"{name}x")
    theirs["selfLink"] = theirs["selfLink"].replace(name, theirs["name"])
    if "labels" in changes:
        labels = changes["labels"].items()
        theirs["labels"] = {k: v.format(ours=cloud.cluster_id) for k, v in labels}
    key = (PROJECT, ZONE, theirs["name"])
    cloud.emulator.cloud.instances[key] = theirs
    cloud.emulator.cloud._made_at_s[key] = 0.0
    their_id = str(Place(*key))

    with pytest.raises(NotFoundError):
        provider.terminate([their_id])
    with pytest.raises(NotFoundError):
        provider.extend([their_id], until_s=time.time() + 60)
    provider.terminate([their_id, ours])

    assert {item.provider_id for item in provider.list_instances()} <= {ours}
    wait_for(lambda: _settled(cloud) == [theirs["name"]], "ours to end")


def test_two_clusters_in_one_project_see_their_own_only(cloud: GcpCloud) -> None:
    """Even when both have an instance of the same id."""
    first, second = cloud.provider(), cloud.provider("other-cluster")
    spec = make_spec(cloud)
    same = spec.model_copy(update={"cluster_id": "other-cluster"})

    ids = launch(first, spec, token="a"), launch(second, same, token="b")

    assert ids[0] != ids[1]
    assert (live(first), live(second)) == ([ids[0]], [ids[1]])


# --- ending -------------------------------------------------------------------------------


def test_an_instance_that_is_being_made_cannot_be_ended_yet(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.provision_s = 60.0
    provider, spec = cloud.provider(launch_wait="0s"), make_spec(cloud)
    with pytest.raises(TransientError):
        launch(provider, spec)
    (item,) = provider.list_instances()

    with pytest.raises(TransientError, match="not ready"):
        provider.terminate([item.provider_id])

    cloud.later(60)
    end(provider, item.provider_id)
    assert cloud.names() == []


def test_several_end_with_one_look_and_one_call_each(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    ids = [launch(provider, make_spec(cloud)) for _ in range(3)]
    before = len(cloud.emulator.api.log)

    provider.terminate([*ids, f"projects/{PROJECT}/zones/{ZONE}/instances/never-was"])

    methods = [record.method for record in cloud.emulator.api.log[before:]]
    assert sorted(methods) == [
        "instances.aggregatedList",
        *["instances.delete"] * 3,
        "instances.get",
    ]


def test_one_that_cannot_be_ended_keeps_no_other_alive(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    ids = sorted(launch(provider, make_spec(cloud)) for _ in range(3))
    cloud.emulator.cloud.instances[key_of(ids[0])]["deletionProtection"] = True

    with pytest.raises(ProviderError, match="is protected"):
        provider.terminate(ids)

    wait_for(lambda: len(_settled(cloud)) == 1, "the others to end")


def test_an_end_that_fails_late_is_asked_for_again(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.faults.add(method="instances.delete", code="INTERNAL_ERROR", status=503)

    end(provider, provider_id)

    assert cloud.names() == []
    assert cloud.calls("instances.delete") >= 2


@pytest.mark.parametrize(
    "provider_id",
    ["", "x", "../..", "us-central1-a/x", f"projects/{PROJECT}/zones/{ZONE}/instances/UP"],
)
def test_what_cannot_be_an_id_is_not_found_without_a_call(
    cloud: GcpCloud, provider_id: str
) -> None:
    with pytest.raises(NotFoundError):
        cloud.provider().terminate([provider_id])

    assert cloud.emulator.api.log == []


# --- expiry -------------------------------------------------------------------------------


def test_an_extension_changes_nothing_but_the_expiry(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    metadata = cloud.emulator.cloud.instances[key_of(provider_id)]["metadata"]
    before = {item["key"]: item["value"] for item in metadata["items"]}

    provider.extend([provider_id], until_s=4_000_000_000.0)

    metadata = cloud.emulator.cloud.instances[key_of(provider_id)]["metadata"]
    after = {item["key"]: item["value"] for item in metadata["items"]}
    assert after == before | {"hybrid-expires-at": "4000000000.000"}


def test_googles_own_end_comes_first_when_it_is_earlier(cloud: GcpCloud) -> None:
    provider = cloud.provider(max_life="1h")
    provider_id = launch(provider, make_spec(cloud))

    provider.extend([provider_id], until_s=time.time() + 7200)

    expires_at_s = listed(provider)[provider_id].expires_at_s
    assert expires_at_s == pytest.approx(time.time() + 3600, abs=10)


def test_an_expiry_that_somebody_took_away_leaves_googles_own(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.cloud.instances[key_of(provider_id)]["metadata"]["items"] = []

    expires_at_s = listed(provider)[provider_id].expires_at_s

    assert expires_at_s == pytest.approx(time.time() + 7 * 86_400, abs=10)
    provider.extend([provider_id], until_s=time.time() + 60)
    assert listed(provider)[provider_id].expires_at_s == pytest.approx(time.time() + 60, abs=10)


def test_several_are_extended_with_one_look(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    ids = [launch(provider, make_spec(cloud)) for _ in range(5)]
    until_s = time.time() + 7200

    provider.extend(ids, until_s=until_s)

    assert cloud.calls("instances.aggregatedList") == 1
    assert cloud.calls("instances.get") == 0
    ends = [item.expires_at_s for item in listed(provider).values()]
    assert ends == [pytest.approx(until_s, abs=1.0)] * 5


def test_one_that_cannot_be_extended_ends_no_other(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    ids = [launch(provider, make_spec(cloud)) for _ in range(3)]
    cloud.emulator.faults.add(method="instances.setMetadata", status=412)
    until_s = time.time() + 7200

    with pytest.raises(TransientError):
        provider.extend(ids, until_s=until_s)

    ends = sorted(item.expires_at_s or 0 for item in provider.list_instances())
    assert ends[0] < until_s - 60
    assert ends[1:] == [pytest.approx(until_s, abs=1.0)] * 2


@pytest.mark.parametrize(
    "fault",
    [
        {"method": "instances.setMetadata", "code": "INTERNAL_ERROR", "status": 500},
        {"method": "zoneOperations.wait", "status": 503},
        {"method": "zoneOperations.wait", "status": 404},
    ],
    ids=["fails-late", "cannot-wait", "operation-unknown"],
)
def test_an_extension_that_is_not_confirmed_is_none(cloud: GcpCloud, fault: dict[str, Any]) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.faults.add(**fault)

    with pytest.raises(ProviderError) as caught:
        provider.extend([provider_id], until_s=time.time() + 7200)

    assert not isinstance(caught.value, NotFoundError)


def test_an_extension_that_takes_too_long_is_not_confirmed(cloud: GcpCloud) -> None:
    provider = cloud.provider(call_timeout="1s")
    provider_id = launch(provider, make_spec(cloud))
    cloud.emulator.faults.add(method="instances.setMetadata", takes_s=60.0)

    with pytest.raises(TransientError, match="not confirmed"):
        provider.extend([provider_id], until_s=time.time() + 7200)


def test_what_is_ending_is_not_extended(cloud: GcpCloud) -> None:
    cloud.emulator.cloud.delete_s = 60.0
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    provider.terminate([provider_id])

    with pytest.raises(NotFoundError):
        provider.extend([provider_id], until_s=time.time() + 60)


# --- nobody is left -----------------------------------------------------------------------


def test_a_node_whose_controller_is_gone_turns_itself_off(cloud: GcpCloud) -> None:
    """The emulated machine follows its lease as our start-up script does."""
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud, expires_in_s=0.3))

    wait_for(lambda: listed(provider)[provider_id].problem, "it to turn itself off")


def test_google_deletes_what_nobody_ends(cloud: GcpCloud) -> None:
    """Even when the program in the machine hangs: what the emulator cannot extend goes."""
    provider = cloud.provider(max_life="24h")
    provider_id = launch(provider, make_spec(cloud, expires_in_s=10**9))

    cloud.later(86_300)
    before = live(provider)
    cloud.later(200)

    assert before == [provider_id]
    wait_for(lambda: _settled(cloud) == [], "Google to delete it")


# --- permissions --------------------------------------------------------------------------

_PAGE = Path(__file__).parents[2] / "docs/fidelity/gcp.md"


def documented() -> set[str]:
    """Return the permissions that the page asks an operator for."""
    block = _PAGE.read_text().partition("<!-- permissions -->")[2].partition("```\n")[2]
    return set(re.findall(r"^[a-z]+\.[A-Za-z.]+$", block.partition("```")[0], re.MULTILINE))


def _whole_life(cloud: GcpCloud) -> None:
    provider = cloud.provider()
    provider_id = launch(provider, make_spec(cloud))
    provider.extend([provider_id], until_s=time.time() + 60)
    end(provider, provider_id)


def test_the_documented_permissions_are_enough(cloud: GcpCloud) -> None:
    cloud.emulator.api.granted = documented()

    _whole_life(cloud)

    assert cloud.names() == []


@pytest.mark.parametrize("permission", sorted(documented()))
def test_each_documented_permission_is_needed(cloud: GcpCloud, permission: str) -> None:
    cloud.emulator.api.granted = documented() - {permission}

    with pytest.raises((AuthError, TransientError), match=permission):
        _whole_life(cloud)


def test_rights_for_nodes_are_needed_only_with_a_service_account(cloud: GcpCloud) -> None:
    cloud.pools[0] |= {"service_account": "node@example.com", "network_tags": ["node"]}
    cloud.emulator.api.granted = documented()

    with pytest.raises(AuthError, match=r"setTags|setServiceAccount|actAs"):
        launch(cloud.provider(), make_spec(cloud))

    assert cloud.emulator.cloud.capacity.get((ZONE, TYPE)) is None

"""What every provider promises whose offers can be rented as gangs (`Offer.max_gang`)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import pytest

from hybrid.core.errors import (
    CapacityError,
    InvalidRequestError,
    NotFoundError,
    TransientError,
)
from hybrid.core.models import CloudState, LaunchSpec, Offer
from hybrid.core.ports import GangProvider
from tests.providers.contract import LIMIT_S, Owner, end, launch, listed, live, make_spec

OWN_TAG = "hybrid-instance"


class GangCloud(Owner, Protocol):
    """One account of a cloud, as the contract needs it; see `tests.providers.contract.Cloud`."""

    def provider(self, cluster_id: str = "") -> GangProvider:
        """Return a new provider object, as after a restart; of another cluster if named."""
        ...

    def lose_next_answer(self) -> GangProvider:
        """Return a provider whose next launch does its work and raises TransientError."""
        ...

    def leave(self, count: int) -> None:
        """Leave so many of the first offer to rent."""
        ...

    def tags(self, provider_id: str) -> dict[str, str]:
        """Return the tags of an instance, as the cloud holds them."""
        ...


def make_gang(cloud: Owner, count: int = 3, *, cluster_id: str = "") -> list[LaunchSpec]:
    """Return the specs of one gang, as the controller makes them."""
    spec = make_spec(cloud, cluster_id=cluster_id)
    names = tuple(f"i-{uuid.uuid4().hex[:10]}" for _ in range(count))
    return [
        spec.model_copy(
            update={
                "instance_id": name,
                "gang": names,
                "tags": {**spec.tags, "hybrid-epoch": str(spec.epoch), OWN_TAG: name},
            }
        )
        for name in names
    ]


def launch_gang(
    provider: GangProvider,
    specs: Sequence[LaunchSpec],
    token: str = "",
    offer: Offer | None = None,
) -> Mapping[str, str]:
    return provider.launch_gang(
        offer or provider.offers()[0],
        specs,
        token=token or f"t-{specs[0].instance_id}",
        join_tokens={spec.instance_id: f"join-{spec.instance_id}" for spec in specs},
    )


class GangContract:
    """The port's promises on gangs. Subclass it together with `ProviderContract`, or alone.

    Subclasses give a fixture `cloud` that ends what is left.
    """

    is_held_to_gangs: ClassVar[bool] = True

    @pytest.fixture
    def provider(self, cloud: GangCloud) -> GangProvider:
        return cloud.provider()

    def test_its_offers_can_be_rented_as_gangs(self, provider: GangProvider) -> None:
        assert provider.offers()[0].max_gang >= 3

    def test_a_gang_is_listed_under_our_ids(self, cloud: GangCloud, provider: GangProvider) -> None:
        specs = make_gang(cloud)

        provider_ids = launch_gang(provider, specs)

        assert set(provider_ids) == {spec.instance_id for spec in specs}
        found = listed(provider)
        assert len(found) == len(specs)
        for spec in specs:
            item = found[provider_ids[spec.instance_id]]
            assert item.instance_id == spec.instance_id
            assert item.state in (CloudState.PENDING, CloudState.RUNNING)
            assert item.expires_at_s == pytest.approx(spec.expires_at_s, abs=1.0)

    def test_the_create_call_of_a_gang_carries_the_owner_tags(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        """All but the instance's own, which some clouds cannot set in a call for many."""
        specs = make_gang(cloud)

        provider_ids = launch_gang(provider, specs)

        for spec in specs:
            tags = cloud.tags(provider_ids[spec.instance_id])
            assert tags.items() >= {k: v for k, v in spec.tags.items() if k != OWN_TAG}.items()
            assert tags.get(OWN_TAG, spec.instance_id) == spec.instance_id

    def test_one_token_never_rents_two_gangs(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        specs = make_gang(cloud)
        first = launch_gang(provider, specs)

        again = launch_gang(provider, specs)
        after_restart = launch_gang(cloud.provider(), specs)

        assert first == again == after_restart
        assert sorted(live(provider)) == sorted(first.values())

    def test_a_lost_answer_of_a_gang_is_found_again_with_the_same_token(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        specs = make_gang(cloud)
        with pytest.raises(TransientError):
            launch_gang(cloud.lose_next_answer(), specs)

        provider_ids = launch_gang(provider, specs)

        assert sorted(live(provider)) == sorted(provider_ids.values())
        assert len(provider_ids) == len(specs)

    def test_gangs_and_single_instances_stand_side_by_side(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        single = launch(provider, make_spec(cloud))
        gangs = [launch_gang(provider, make_gang(cloud, 2)) for _ in range(2)]

        rented = [single, *(i for gang in gangs for i in gang.values())]
        assert sorted(live(provider)) == sorted(set(rented))
        assert len(rented) == 5

    def test_a_gang_that_cannot_be_had_whole_is_not_had_at_all(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        offer = provider.offers()[0]
        cloud.leave(2)
        short = cloud.provider()

        with pytest.raises(CapacityError) as caught:
            launch_gang(short, make_gang(cloud, 3), offer=offer)

        assert caught.value.provider == provider.name
        assert live(short) == []
        assert len(launch_gang(short, make_gang(cloud, 2), offer=offer)) == 2

    def test_each_of_a_gang_is_extended_and_ended_by_itself(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        specs = make_gang(cloud)
        one, two, three = (launch_gang(provider, specs)[s.instance_id] for s in specs)
        until_s = specs[0].expires_at_s + 3_600

        provider.extend([one, two], until_s=until_s)
        found = listed(provider)
        end(provider, two)

        assert [found[i].expires_at_s for i in (one, two)] == pytest.approx([until_s] * 2, abs=1.0)
        assert found[three].expires_at_s == pytest.approx(specs[0].expires_at_s, abs=1.0)
        assert sorted(live(provider)) == sorted([one, three])

    def test_a_gone_instance_of_a_gang_is_not_rented_again_with_its_token(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        specs = make_gang(cloud, 2)
        provider_ids = launch_gang(provider, specs)
        kept, ended = provider_ids.values()
        end(provider, ended)

        again = launch_gang(provider, specs)

        assert again == provider_ids
        assert live(provider) == [kept]

    def test_the_gang_of_another_cluster_is_neither_seen_nor_touched(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        other = cloud.provider("other-cluster")
        theirs = launch_gang(other, make_gang(cloud, 2, cluster_id="other-cluster"))

        with pytest.raises(NotFoundError):
            provider.terminate(theirs.values())
        with pytest.raises(NotFoundError):
            provider.extend(theirs.values(), until_s=time.time() + LIMIT_S)

        assert listed(provider) == {}
        assert sorted(live(other)) == sorted(theirs.values())

    def test_a_gang_of_an_unknown_offer_is_refused_for_good(
        self, cloud: GangCloud, provider: GangProvider
    ) -> None:
        offer = provider.offers()[0].model_copy(update={"offer_id": f"{provider.name}/no/such/x"})

        with pytest.raises(InvalidRequestError):
            launch_gang(provider, make_gang(cloud), offer=offer)

        assert live(provider) == []

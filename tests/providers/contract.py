"""What every provider promises; each cloud's tests subclass `ProviderContract`."""

from __future__ import annotations

import time
import uuid
from typing import ClassVar, Protocol

import pytest

from hybrid.core.errors import (
    CapacityError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    TransientError,
)
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from hybrid.core.ports import Provider
from hybrid.core.tags import offer_mark, owner_tags

LIMIT_S = 60.0


class Owner(Protocol):
    """A cluster that rents."""

    cluster_id: str
    controller_url: str


class Cloud(Owner, Protocol):
    """One account of a cloud, real or emulated, as the contract needs it."""

    def provider(self, cluster_id: str = "") -> Provider:
        """Return a new provider object, as after a restart; of another cluster if named."""
        ...

    def lose_next_answer(self) -> Provider:
        """Return a provider whose next launch does its work and raises TransientError."""
        ...

    def sell_out(self) -> None:
        """Leave nothing to rent."""
        ...

    def tags(self, provider_id: str) -> dict[str, str]:
        """Return the tags of an instance, as the cloud holds them."""
        ...


OFFER = "some/offer/Of-a-name"


def make_spec(cloud: Owner, *, cluster_id: str = "", expires_in_s: float = 600.0) -> LaunchSpec:
    instance_id = f"i-{uuid.uuid4().hex[:8]}"
    owner = cluster_id or cloud.cluster_id
    return LaunchSpec(
        cluster_id=owner,
        instance_id=instance_id,
        epoch=1,
        head_address="127.0.0.1:22710",
        controller_url=cloud.controller_url,
        labels={"site": "cloud", "provider": "x"},
        expires_at_s=time.time() + expires_in_s,
        ray_version="2.60.0",
        python_version="3.11",
        tags=owner_tags(
            cluster_id=owner, cluster_name="lab", instance_id=instance_id, epoch=1, offer_id=OFFER
        ),
    )


def launch(
    provider: Provider, spec: LaunchSpec, token: str = "", offer: Offer | None = None
) -> str:
    chosen = offer or provider.offers()[0]
    return provider.launch(
        chosen, spec, token=token or f"t-{spec.instance_id}", join_token="join-once"
    )


def listed(provider: Provider) -> dict[str, CloudInstance]:
    return {item.provider_id: item for item in provider.list_instances()}


def live(provider: Provider) -> list[str]:
    return [k for k, item in listed(provider).items() if item.state is not CloudState.GONE]


def end(provider: Provider, *provider_ids: str) -> None:
    """Terminate as the controller does: again and again, until the cloud's word."""
    end_s = time.monotonic() + LIMIT_S
    while left := set(provider_ids) & set(live(provider)):
        assert time.monotonic() < end_s, f"{left} did not end"
        try:
            provider.terminate(left)
        except NotFoundError:
            return
        time.sleep(0.1)


class ProviderContract:
    """The port's promises. Subclasses give a fixture `cloud` that ends what is left.

    Attributes:
        is_held_to_gangs: Whether `tests.providers.gang_contract.GangContract` is tested too.
    """

    is_held_to_gangs: ClassVar[bool] = False

    @pytest.fixture
    def provider(self, cloud: Cloud) -> Provider:
        return cloud.provider()

    def test_offers_are_distinct_priced_and_of_this_provider(self, provider: Provider) -> None:
        offers = provider.offers()

        assert offers
        assert len({offer.offer_id for offer in offers}) == len(offers)
        for offer in offers:
            assert offer.provider == provider.name
            assert offer.offer_id.startswith(f"{provider.name}/")
            assert offer.usd_per_hour > 0

    def test_who_offers_gangs_is_held_to_their_contract(self, provider: Provider) -> None:
        has_gangs = any(offer.max_gang > 1 for offer in provider.offers())

        assert has_gangs == self.is_held_to_gangs

    def test_a_launched_instance_is_listed_under_our_id(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        spec = make_spec(cloud)

        provider_id = launch(provider, spec)

        item = listed(provider)[provider_id]
        assert item.instance_id == spec.instance_id
        assert item.state in (CloudState.PENDING, CloudState.RUNNING)
        assert item.launched_at_s == pytest.approx(time.time(), abs=LIMIT_S)
        assert item.expires_at_s == pytest.approx(spec.expires_at_s, abs=1.0)

    def test_the_create_call_carries_the_owner_tags(self, cloud: Cloud, provider: Provider) -> None:
        spec = make_spec(cloud)

        provider_id = launch(provider, spec)

        assert cloud.tags(provider_id).items() >= spec.tags.items()

    def test_the_list_says_what_a_machine_was_rented_as(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        """By that a lost ledger is made anew."""
        provider_id = launch(provider, make_spec(cloud))

        assert listed(provider)[provider_id].offer_mark == offer_mark(OFFER)

    def test_one_token_never_rents_two_machines(self, cloud: Cloud, provider: Provider) -> None:
        spec = make_spec(cloud)
        first = launch(provider, spec)

        again = launch(provider, spec)
        after_restart = launch(cloud.provider(), spec)

        assert first == again == after_restart
        assert live(provider) == [first]

    def test_a_lost_answer_is_found_again_with_the_same_token(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        spec = make_spec(cloud)
        with pytest.raises(TransientError):
            launch(cloud.lose_next_answer(), spec)

        provider_id = launch(provider, spec)

        assert live(provider) == [provider_id]

    def test_other_tokens_rent_other_machines(self, cloud: Cloud, provider: Provider) -> None:
        ids = {launch(provider, make_spec(cloud)) for _ in range(2)}

        assert len(ids) == 2
        assert set(live(provider)) == ids

    def test_another_cluster_is_neither_seen_nor_touched(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        other = cloud.provider("other-cluster")
        theirs = launch(other, make_spec(cloud, cluster_id="other-cluster"))

        with pytest.raises(NotFoundError):
            provider.terminate([theirs])
        with pytest.raises(NotFoundError):
            provider.extend([theirs], until_s=time.time() + 60)

        assert listed(provider) == {}
        assert live(other) == [theirs]

    def test_terminate_is_repeated_until_the_cloud_says_gone(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        kept, ended = (launch(provider, make_spec(cloud)) for _ in range(2))

        end(provider, ended)

        assert live(provider) == [kept]

    def test_a_gone_instance_is_not_rented_again_with_its_token(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        spec = make_spec(cloud)
        provider_id = launch(provider, spec)
        end(provider, provider_id)

        again = launch(provider, spec)

        assert again == provider_id
        assert live(provider) == []

    def test_what_does_not_exist_is_not_found(self, provider: Provider) -> None:
        with pytest.raises(NotFoundError) as caught:
            provider.terminate(["i-never-was"])
        with pytest.raises(NotFoundError):
            provider.extend(["i-never-was"], until_s=time.time() + 60)

        assert caught.value.provider == provider.name

    def test_unknown_ids_do_not_keep_the_known_ones_from_being_served(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        provider_id = launch(provider, make_spec(cloud))
        until_s = time.time() + 7200

        provider.extend([provider_id, "i-never-was"], until_s=until_s)
        expires_at_s = listed(provider)[provider_id].expires_at_s
        provider.terminate([provider_id, "i-never-was"])

        assert expires_at_s == pytest.approx(until_s, abs=1.0)
        end(provider, provider_id)

    def test_extend_moves_the_expiry(self, cloud: Cloud, provider: Provider) -> None:
        provider_id = launch(provider, make_spec(cloud))
        until_s = time.time() + 7200

        provider.extend([provider_id], until_s=until_s)

        assert listed(provider)[provider_id].expires_at_s == pytest.approx(until_s, abs=1.0)

    def test_sold_out_is_a_capacity_error_and_rents_nothing(
        self, cloud: Cloud, provider: Provider
    ) -> None:
        offer = provider.offers()[0]
        cloud.sell_out()
        sold_out = cloud.provider()

        with pytest.raises(CapacityError) as caught:
            launch(sold_out, make_spec(cloud), offer=offer)

        assert caught.value.provider == provider.name
        assert live(sold_out) == []

    def test_an_unknown_offer_is_refused_for_good(self, cloud: Cloud, provider: Provider) -> None:
        offer = provider.offers()[0].model_copy(update={"offer_id": f"{provider.name}/no/such/x"})

        with pytest.raises(InvalidRequestError):
            launch(provider, make_spec(cloud), offer=offer)

        assert live(provider) == []

    def test_every_failure_is_an_error_of_the_port(self, cloud: Cloud, provider: Provider) -> None:
        offer = provider.offers()[0].model_copy(update={"offer_id": ""})

        with pytest.raises(ProviderError):
            launch(provider, make_spec(cloud), offer=offer)

"""One cloud account that rents instances, and how one is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hybrid.core.catalog import Catalog
from hybrid.core.models import CloudInstance, LaunchSpec, Offer
from hybrid.core.ports.clock import Clock


class Provider(Protocol):
    """One cloud account that rents instances.

    Implementations are *idempotent* (one token never rents two machines), may be
    *eventually consistent* (`list_instances` can lag a launch), and translate every SDK
    exception into `hybrid.core.errors`. They never retry, sleep, log or share code.
    """

    @property
    def name(self) -> str:
        """Name of the provider block in the configuration; unique in a cluster."""
        ...

    @property
    def list_lag_s(self) -> float:
        """Longest time a launched instance may be missing from `list_instances`.

        Absence is no proof before this has passed; 0 for a list that is always true.
        """
        ...

    def offers(self) -> Sequence[Offer]:
        """Return what can be rented, with prices and, where known, stock.

        Raises:
            ProviderError: The list could not be read; the last one stays in force.
        """
        ...

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """Rent one instance and return the cloud's id for it.

        The same `token` returns the same machine, also when the first answer was lost.
        Owner tags (`spec.tags`) go inside the create call.

        Args:
            offer: What to rent.
            spec: Frozen with the token.
            token: Idempotency token.
            join_token: One-time secret for the node; goes into user data only.

        Raises:
            CapacityError: Sold out; nothing was rented.
            QuotaError: Our limit; nothing was rented.
            InvalidRequestError: Never going to work; nothing was rented.
            AuthError: Nothing was rented.
            ThrottledError: Nothing was rented; try the same call again.
            TransientError: Unknown whether something was rented; same call, same token.
            PendingError: The same, and the cloud is at work on it.
        """
        ...

    def list_instances(self) -> Sequence[CloudInstance]:
        """Return every instance that carries exactly our owner tags.

        Ended ones are included for as long as the cloud still lists them.

        Raises:
            ProviderError: The list could not be read. It is then *unknown*, not empty.
        """
        ...

    def terminate(self, provider_ids: Collection[str]) -> None:
        """Ask the cloud to end instances.

        Returns before they are gone; repeat until the list says `GONE` or this raises
        `NotFoundError`.

        Raises:
            NotFoundError: None of them exists.
            ProviderError: Nothing is known about the outcome; call again.
        """
        ...

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """Move the instances' own expiry to `until_s`, seconds since the epoch.

        Raises:
            NotFoundError: None of them exists.
            ProviderError: The old expiry may still be in force.
        """
        ...


class GangProvider(Provider, Protocol):
    """A provider that can rent several instances in one call, all or none.

    Its offers say so in `Offer.max_gang`. Without it a gang is rented one by one, and a cloud
    that has too few makes us pay for a part of it until the policy gives that back.
    """

    def launch_gang(
        self,
        offer: Offer,
        specs: Sequence[LaunchSpec],
        *,
        token: str,
        join_tokens: Mapping[str, str],
    ) -> Mapping[str, str]:
        """Rent an instance for each spec, or none; return the cloud's ids by ours.

        Everything that `Provider.launch` says holds for the whole: the same `token` with the
        same specs returns the same machines.

        Args:
            offer: What to rent.
            specs: One for each instance, at most `offer.max_gang`. They differ in
                `instance_id` and its tag only, and each names them all in `gang`.
            token: Idempotency token of the call.
            join_tokens: One-time secrets of the nodes by instance id.
        """
        ...


@runtime_checkable
class TidyProvider(Protocol):
    """A provider that makes things beside its instances: free ones, which serve many launches."""

    def tidy(self) -> None:
        """Remove them; called when the cluster goes down and nothing is rented any more.

        Raises:
            ProviderError: Some may be left. They cost nothing.
        """
        ...


@dataclass(frozen=True)
class ProviderContext:
    """What every provider gets beside its own settings.

    Attributes:
        cluster_id: Owner tag of everything it rents.
        cluster_name: For names people see.
        state_dir: A folder of its own on the head host.
        ray_dir: A short folder for Ray's sockets on the head host (paths have a limit of 107
            bytes), used by the local provider only.
        clock: Time.
        catalog: What machines cost where neither the configuration nor the cloud says.
        rates: Units of a currency for one US dollar, as `prices.rates` of the configuration has
            them.
    """

    cluster_id: str
    cluster_name: str
    state_dir: str
    ray_dir: str
    clock: Clock
    catalog: Catalog = field(default_factory=Catalog)
    rates: Mapping[str, float] = field(default_factory=dict)


class MakeProvider(Protocol):
    """The signature behind a `hybrid.providers` entry point."""

    def __call__(self, name: str, raw: Mapping[str, object], context: ProviderContext) -> Provider:
        """Return a provider.

        Args:
            name: Name of the provider block; the first part of `infra`.
            raw: Account-level settings, and under `pools` the list of this provider's
                entries of `clouds`, in order. Each has what the file says, plus `rank`.
            context: What the program gives it.

        Raises:
            pydantic.ValidationError: `raw` is wrong; its `loc` starts with `pools`, the
                entry's number, and so on.
        """
        ...

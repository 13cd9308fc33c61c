"""AWS behind the port `hybrid.core.ports.Provider`.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html
https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hybrid.core.errors import (
    AuthError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
)
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from hybrid.core.models.withheld import Offered
from hybrid.core.ports import ProviderContext
from providers.aws import requests
from providers.aws.client import AwsClient
from providers.aws.fleet import Fleets
from providers.aws.instances import (
    CLUSTER,
    EXPIRES,
    INSTANCE,
    TOKEN,
    Place,
    cloud_instance,
    is_ours,
    state_of,
    tags_of,
)
from providers.aws.listprices import ListPrices
from providers.aws.machines import Knowledge
from providers.aws.market import REFRESH_S, Images, SpotPrices, Types
from providers.aws.ondemand import OnDemand
from providers.aws.params import Params
from providers.aws.shelf import Shelf
from providers.aws.userdata import user_data

_PAGE_COUNT = 1000
_FILTER_VALUES = 200  # EC2 takes no more in one filter


class AwsProvider:
    """See `Provider`. Its ids are `ACCOUNT/REGION/EC2's id`. Thread-safe.

    The lease is a tag that instances read from their metadata: renewing it needs no way to the
    node and no second service. What does not see it renewed turns itself off, which ends it.
    """

    # EC2: "eventual consistency"; its advice is to keep asking for up to five minutes.
    list_lag_s = 300.0

    def __init__(
        self,
        name: str,
        params: Params,
        context: ProviderContext,
        *,
        client: AwsClient | None = None,
    ) -> None:
        self.name = name
        self._params = params
        self._context = context
        self._client = client or AwsClient(
            provider=name, profile=params.profile, endpoint_url=params.endpoint_url
        )
        self._pools = {pool.offer_id(name): pool for pool in params.pools}
        # Regions of pools and, once their ids come by, of instances whose pool is no longer there.
        self._regions = frozenset(pool.region for pool in params.pools)
        self._shelf = Shelf(
            name,
            params,
            types=Types(self._client),
            spot=SpotPrices(self._client, context.clock),
            on_demand=OnDemand(
                context,
                ListPrices(self._client, context.clock, every_s=params.price_refresh),
            ),
        )
        self._images = Images(self._client, context.clock)
        self._fleets = Fleets(self._client, context.clock)
        self._swept_at_s = context.clock.monotonic_s()
        self._lock = threading.Lock()
        self._offers_lock = threading.Lock()

    def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`. `pool_offers` says what is left out, and why."""
        return [offer for offer in self.pool_offers() if isinstance(offer, Offer)]

    def pool_offers(self) -> Sequence[Offered]:
        """See `CandidProvider.pool_offers`."""
        with self._offers_lock:
            self._sweep()
            return self._shelf.online()

    def offline_offers(self) -> Sequence[Offered]:
        """See `OfflineProvider.offline_offers`."""
        return self._shelf.offline()

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`."""
        order = self._order(offer, spec, token=token, join_token=join_token)
        region = order.pool.region
        account = self._client.account(region)
        try:
            ec2_id = self._run(order) if order.pool.zone else self._fleets.launch(order)
        except ConflictError as error:
            # Launched with this token before the configuration changed, or ended since.
            ec2_id = self._find(region, spec, token)
            if not ec2_id:
                raise error from None
        return str(Place(account, region, ec2_id))

    def list_instances(self) -> Sequence[CloudInstance]:
        """See `Provider.list_instances`."""
        ours = [{"Name": f"tag:{CLUSTER}", "Values": [self._context.cluster_id]}]
        return [
            cloud_instance(item, self._client.account(region), region)
            for region in sorted(self._regions)
            for item in self._described(region, ours)
        ]

    def terminate(self, provider_ids: Collection[str]) -> None:
        """See `Provider.terminate`."""

        def end(region: str, items: Sequence[Mapping[str, Any]]) -> None:
            ids = [i["InstanceId"] for i in items if state_of(i) is not CloudState.GONE]
            if ids:
                self._client.call(region, "ec2.terminate_instances", InstanceIds=ids)

        self._for_each(provider_ids, end)

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """See `Provider.extend`: the expiry is a tag, which the instance reads."""
        tags = [{"Key": EXPIRES, "Value": requests.expiry(until_s)}]
        live: list[str] = []

        def renew(region: str, items: Sequence[Mapping[str, Any]]) -> None:
            ids = [i["InstanceId"] for i in items if state_of(i) is not CloudState.GONE]
            if ids:
                self._client.call(region, "ec2.create_tags", Resources=ids, Tags=tags)
                live.extend(ids)

        self._for_each(provider_ids, renew)
        if not live:
            raise self._not_found(provider_ids)

    def tidy(self) -> None:
        """See `TidyProvider.tidy`: launch templates, which cost nothing, are all there can be."""
        for region in self._fleet_regions():
            self._fleets.remove_all(region, self._context.cluster_id)

    # --- launching -------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Remove launch templates that nobody needs any more, now and then."""
        now_s = self._context.clock.monotonic_s()
        if now_s - self._swept_at_s < REFRESH_S:
            return
        self._swept_at_s = now_s
        for region in self._fleet_regions():
            self._fleets.sweep(region, self._context.cluster_id)

    def _fleet_regions(self) -> Sequence[str]:
        return sorted({pool.region for pool in self._params.pools if not pool.zone})

    def _order(
        self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str
    ) -> requests.Order:
        pool = self._pools.get(offer.offer_id)
        if pool is None or spec.cluster_id != self._context.cluster_id:
            raise InvalidRequestError(
                f"{offer.offer_id or 'an offer without id'} for cluster {spec.cluster_id} is not "
                "an offer of this provider",
                provider=self.name,
            )
        image = self._images.find(pool.region, pool.image or self._params.region(pool).image or "")
        try:
            script = user_data(
                spec,
                offer.shape,
                join_token=join_token,
                python=self._params.python,
                is_spot=pool.use_spot,
                preflight=self._params,
            )
        except ValidationError as err:
            message = "; ".join(item["msg"] for item in err.errors(include_url=False))
            raise InvalidRequestError(message, provider=self.name) from err
        except ValueError as err:
            raise InvalidRequestError(str(err), provider=self.name) from err
        return requests.Order(
            params=self._params,
            pool=pool,
            spec=spec,
            token=token,
            image=image,
            user_data=script,
            name=f"hybrid {self._context.cluster_name} {spec.instance_id}",
            group=f"hybrid {self._context.cluster_name}",
        )

    def _run(self, order: requests.Order) -> str:
        answer = self._client.call(
            order.pool.region, "ec2.run_instances", "Instances", **requests.run_instances(order)
        )
        return str(answer["Instances"][0]["InstanceId"])

    def _find(self, region: str, spec: LaunchSpec, token: str) -> str:
        """Return EC2's id of the instance that a token made; `""` when it is not listed."""
        filters = [
            {"Name": f"tag:{CLUSTER}", "Values": [spec.cluster_id]},
            {"Name": f"tag:{INSTANCE}", "Values": [spec.instance_id]},
        ]
        for item in self._described(region, filters):
            if tags_of(item).get(TOKEN) == token:
                return str(item["InstanceId"])
        return ""

    # --- what there is ---------------------------------------------------------------------

    def _described(
        self, region: str, filters: Sequence[Mapping[str, Any]]
    ) -> Iterator[Mapping[str, Any]]:
        """Yield what EC2 shows of our own instances."""
        reservations = self._client.pages(
            region,
            "ec2.describe_instances",
            "Reservations",
            Filters=filters,
            MaxResults=_PAGE_COUNT,
        )
        for reservation in reservations:
            for item in reservation["Instances"]:
                if is_ours(item, self._context.cluster_id):
                    yield item

    def _for_each(
        self,
        provider_ids: Collection[str],
        act: Callable[[str, Sequence[Mapping[str, Any]]], None],
    ) -> None:
        """Call `act` with those of the instances that are ours, region by region.

        Looked up first: EC2 refuses a whole request for one unknown id, and nothing that is not
        ours may be touched, whatever id we were given. A region in trouble does not keep the
        others from being served.
        """
        by_region: dict[tuple[str, str], list[str]] = {}
        for place in filter(None, map(Place.of, sorted(provider_ids))):
            by_region.setdefault((place.account, place.region), []).append(place.ec2_id)
        with self._lock:
            self._regions |= {region for _, region in by_region}
        is_found = False
        first: ProviderError | None = None
        for (account, region), ids in by_region.items():
            for start in range(0, len(ids), _FILTER_VALUES):
                try:
                    self._check_account(account, region)
                    items = self._mine(region, ids[start : start + _FILTER_VALUES])
                    is_found = is_found or bool(items)
                    act(region, items)
                except ProviderError as error:
                    first = first or error
        if first is not None:
            raise first
        if not is_found:
            raise self._not_found(provider_ids)

    def _check_account(self, account: str, region: str) -> None:
        """Raise unless the credentials are for the account: another one knows none of ours."""
        given = self._client.account(region)
        if given != account:
            raise AuthError(
                f"instances of this cluster are in AWS account {account}, and the credentials are "
                f"for {given}; use those of {account} until its instances have ended",
                provider=self.name,
                code="OtherAccount",
            )

    def _mine(self, region: str, ec2_ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return what EC2 shows of instances, as far as they are ours; unknown ids are none."""
        filters = [
            {"Name": f"tag:{CLUSTER}", "Values": [self._context.cluster_id]},
            {"Name": "instance-id", "Values": list(ec2_ids)},
        ]
        return list(self._described(region, filters))

    def _not_found(self, provider_ids: Collection[str]) -> NotFoundError:
        ids = ", ".join(sorted(provider_ids)) or "(none named)"
        return NotFoundError(f"no such instance of ours: {ids}", provider=self.name)


def make(name: str, raw: Mapping[str, object], context: ProviderContext) -> AwsProvider:
    """Return AWS; see `hybrid.core.ports.MakeProvider`."""
    params = Params.model_validate(raw, context=Knowledge(context.catalog))
    return AwsProvider(name, params, context)

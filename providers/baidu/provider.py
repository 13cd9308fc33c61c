"""Baidu AI Cloud behind the port `hybrid.core.ports.Provider`.

Its ids are `REGION/ID`, so that an instance is found in its region whatever the pools say
today. API: https://cloud.baidu.com/doc/BCC/s/Kjwvyofgz
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaError,
    TransientError,
)
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from hybrid.core.models.withheld import Offered
from hybrid.core.ports import ProviderContext
from hybrid.core.tags import OFFER
from providers.baidu import credentials
from providers.baidu.client import Bcc, Machine, Order
from providers.baidu.credentials import Keys
from providers.baidu.offers import bid_cny_per_minute, offered
from providers.baidu.params import Params, Pool
from providers.baidu.userdata import script

CLUSTER_TAG = "hybrid-cluster"
INSTANCE_TAG = "hybrid-instance"

_TAG = re.compile(r"[A-Za-z0-9\u4e00-\u9fff_/. -]{1,65}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_/.-]")
_NAME_CHARS = 65

# Words of Baidu -> what they mean here. Any other word is a machine that exists and costs.
_STATES: Mapping[str, CloudState] = {
    "Starting": CloudState.PENDING,
    "Stopping": CloudState.STOPPING,
    "Stopped": CloudState.STOPPING,
    "Expired": CloudState.STOPPING,
    "Error": CloudState.STOPPING,
    "Deleted": CloudState.GONE,
    # In the recycle bin, where Baidu bills a pay-as-you-go instance no more ("resume billing"
    # is what takes it out again) and releases it after two hours.
    "Recycled": CloudState.GONE,
}
_BROKEN: Mapping[str, str] = {
    "Stopped": "it was stopped, and still costs money",
    "Expired": "Baidu stopped it because the account owes money",
    "Error": "Baidu says that it is in error",
}
# What a try again will not mend.
_FINAL = (AuthError, CapacityError, InvalidRequestError, QuotaError)


class BaiduProvider:
    """See `Provider`. Every call goes to the cloud; nothing is remembered but connections."""

    # Not measured. Creation is asynchronous, and Baidu promises no time for its list.
    list_lag_s = 120.0

    def __init__(self, name: str, params: Params, context: ProviderContext) -> None:
        self.name = name
        self._params = params
        self._context = context
        self._pools = {pool.offer_id(name): pool for pool in params.pools}
        self._clients: dict[str, tuple[Keys, Bcc]] = {}

    def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`. `pool_offers` says what is left out, and why."""
        return [offer for offer in self.pool_offers() if isinstance(offer, Offer)]

    def pool_offers(self) -> Sequence[Offered]:
        """See `CandidProvider.pool_offers`."""
        params, context = self._params, self._context
        return [offered(self.name, pool, params, context) for pool in params.pools]

    def offline_offers(self) -> Sequence[Offered]:
        """See `OfflineProvider.offline_offers`: no call is needed for `pool_offers`."""
        return self.pool_offers()

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`. Two calls: create, and then the instance's own expiry.

        An instance whose expiry is not set is not reported as launched: the same call again
        sets it. Should that call never come, `list_instances` shows it without an expiry.
        """
        pool = self._pools.get(offer.offer_id)
        if pool is None:
            raise self._invalid(f"{offer.offer_id!r} is not an offer of this cloud")
        order = self._order(pool, offer, spec, token=token, join_token=join_token)
        bcc = self._bcc(pool.region)
        try:
            bcc_id = bcc.create(order)
        except NotFoundError as err:
            # Not the instance, which does not exist yet, but an image or a subnet.
            raise InvalidRequestError(str(err), provider=self.name, code=err.code) from err
        self._set_first_expiry(bcc, bcc_id, spec.expires_at_s)
        return f"{pool.region}/{bcc_id}"

    def list_instances(self) -> Sequence[CloudInstance]:
        """See `Provider.list_instances`. Ended ones are missing as soon as Baidu forgets them."""
        return [
            self._listed(region, machine)
            for region in sorted({pool.region for pool in self._params.pools})
            for machine in self._bcc(region).list(tag=(CLUSTER_TAG, self._context.cluster_id))
            if self._is_ours(machine)
        ]

    def terminate(self, provider_ids: Collection[str]) -> None:
        """See `Provider.terminate`."""
        self._for_each(provider_ids, lambda bcc, machine: bcc.release(machine.bcc_id))

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """See `Provider.extend`. Also gives an expiry to an instance that has none."""
        self._for_each(
            provider_ids, lambda bcc, machine: bcc.set_release_time(machine.bcc_id, until_s)
        )

    # --- launching -------------------------------------------------------------------------

    def _order(
        self, pool: Pool, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str
    ) -> Order:
        if spec.cluster_id != self._context.cluster_id:
            raise self._invalid(f"{spec.instance_id} is not of this cluster")
        # The tags by which we find it again come last: they cannot be anything else.
        own = {CLUSTER_TAG: spec.cluster_id, INSTANCE_TAG: spec.instance_id}
        tags = {**spec.tags, **own}
        for key, value in tags.items():
            if not _TAG.fullmatch(key) or not _TAG.fullmatch(value):
                raise self._invalid(
                    f"Baidu takes no tag {key!r}: {value!r}; both need 1 to 65 letters, digits, "
                    "spaces, '-', '_', '/' or '.'"
                )
        try:
            text = script(
                spec,
                offer.shape,
                python=self._params.python,
                join_token=join_token,
                preflight=self._params,
            )
        except ValueError as err:
            raise self._invalid(str(err)) from err
        name = f"hybrid-{self._context.cluster_name}-{spec.instance_id}"
        exchange, usd = self._params.exchange, offer.usd_per_hour
        return Order(
            client_token=hashlib.sha256(token.encode()).hexdigest()[:40],
            name=_NOT_IN_NAMES.sub("-", name)[:_NAME_CHARS],
            instance_type=pool.instance_type,
            zone=pool.zone,
            image=self._params.image_of(pool),
            subnet=self._params.subnet_of(pool),
            security_groups=self._params.security_groups,
            key_pair=self._params.key_pair or "",
            resource_group=self._params.resource_group or "",
            root_disk_gb=self._params.root_disk_gb,
            tags=tags,
            user_data=text,
            bid_cny_per_minute=(
                bid_cny_per_minute(pool, exchange, usd_per_hour=usd)
                if pool.use_spot and exchange
                else ""
            ),
        )

    def _set_first_expiry(self, bcc: Bcc, bcc_id: str, expires_at_s: float) -> None:
        """Give a new instance its expiry, or give the instance back.

        Raises:
            ProviderError: Baidu will not set it, and the instance was released.
            TransientError: It exists, and whether its expiry is set is not known.
        """
        try:
            bcc.set_release_time(bcc_id, expires_at_s)
        except NotFoundError:
            # Not visible yet, or an old launch's, gone long ago: the list tells which.
            return
        except _FINAL as err:
            self._give_back(bcc, bcc_id, err)
            message = f"{err}; without an expiry it could cost for ever, so it was released again"
            raise type(err)(message, provider=self.name, code=err.code, scope=err.scope) from err
        except ProviderError as err:
            raise self._unsettled(bcc_id, err) from err

    def _give_back(self, bcc: Bcc, bcc_id: str, reason: ProviderError) -> None:
        try:
            bcc.release(bcc_id)
        except NotFoundError:
            return
        except ProviderError as err:
            raise self._unsettled(bcc_id, reason) from err

    def _unsettled(self, bcc_id: str, err: ProviderError) -> TransientError:
        # Never any other kind: "nothing was rented" would be wrong.
        message = f"{bcc_id} was created, but its expiry is not set yet: {err}"
        return TransientError(message, provider=self.name, code=err.code)

    # --- what there is ---------------------------------------------------------------------

    def _for_each(self, provider_ids: Collection[str], act: Callable[[Bcc, Machine], None]) -> None:
        """Do something to each of our machines that lives; one failure keeps none from it."""
        found_count, failures = 0, list[ProviderError]()
        for region, bcc_ids in sorted(_by_region(provider_ids).items()):
            bcc = self._bcc(region)
            for machine in self._machines(bcc, bcc_ids, failures):
                if not self._is_ours(machine) or _state(machine) is CloudState.GONE:
                    continue
                found_count += 1
                try:
                    act(bcc, machine)
                except NotFoundError:
                    # It was there a moment ago, and what is missing may be a disk of it: only
                    # the question of the next call proves its end.
                    continue
                except ProviderError as err:
                    failures.append(err)
        if failures:
            raise failures[0]
        if not found_count:
            ids = ", ".join(sorted(provider_ids)) or "(none named)"
            raise NotFoundError(f"no such instance: {ids}", provider=self.name, code="NotFound")

    def _machines(
        self, bcc: Bcc, bcc_ids: Sequence[str], failures: list[ProviderError]
    ) -> Iterator[Machine]:
        """Yield machines by id. Only a direct question proves that one does not exist."""
        listed: dict[str, Machine] = {}
        if len(bcc_ids) > 1:
            try:
                listed = {m.bcc_id: m for m in bcc.list_ids(bcc_ids)}
            except ProviderError as err:
                failures.append(err)
                return
        yield from (listed[bcc_id] for bcc_id in bcc_ids if bcc_id in listed)
        for bcc_id in bcc_ids:
            if bcc_id in listed:
                continue
            try:
                yield bcc.get(bcc_id)
            except NotFoundError:
                continue
            except ProviderError as err:
                failures.append(err)

    def _is_ours(self, machine: Machine) -> bool:
        # Both tags, exactly: Baidu decides what its filter lets through, and people copy tags.
        is_of_cluster = machine.tags.get(CLUSTER_TAG) == self._context.cluster_id
        return is_of_cluster and bool(machine.tags.get(INSTANCE_TAG))

    def _listed(self, region: str, machine: Machine) -> CloudInstance:
        created_at_s = machine.created_at_s
        return CloudInstance(
            instance_id=machine.tags[INSTANCE_TAG],
            provider_id=f"{region}/{machine.bcc_id}",
            state=_state(machine),
            # An unknown age counts as young: it is watched before it is judged.
            launched_at_s=self._context.clock.now_s() if created_at_s is None else created_at_s,
            expires_at_s=machine.release_at_s,
            offer_mark=machine.tags.get(OFFER, ""),
            problem=_BROKEN.get(machine.status, ""),
        )

    def _bcc(self, region: str) -> Bcc:
        keys = credentials.read(self._params.credentials_file, provider=self.name)
        known = self._clients.get(region)
        if known is None or known[0] != keys:
            known = (
                keys,
                Bcc(
                    self.name,
                    self._params.endpoint(region),
                    keys,
                    timeout_s=self._params.timeout,
                    errors=self._params.errors,
                ),
            )
            self._clients[region] = known
        return known[1]

    def _invalid(self, message: str) -> InvalidRequestError:
        return InvalidRequestError(message, provider=self.name)


def _state(machine: Machine) -> CloudState:
    return _STATES.get(machine.status, CloudState.RUNNING)


def _by_region(provider_ids: Collection[str]) -> dict[str, list[str]]:
    """Return Baidu's ids by region; what is not an id of ours is left out."""
    ids: dict[str, list[str]] = {}
    for provider_id in sorted(set(provider_ids)):
        region, _, bcc_id = provider_id.partition("/")
        if region and bcc_id:
            ids.setdefault(region, []).append(bcc_id)
    return ids


def make(name: str, raw: Mapping[str, object], context: ProviderContext) -> BaiduProvider:
    """Return Baidu AI Cloud; see `hybrid.core.ports.MakeProvider`."""
    return BaiduProvider(name, Params.model_validate(raw), context)

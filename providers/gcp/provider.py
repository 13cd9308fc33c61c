"""Google Cloud behind the port `hybrid.core.ports.GangProvider`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from hybrid.core.errors import InvalidRequestError, NotFoundError, ProviderError, TransientError
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from hybrid.core.models.withheld import Offered
from hybrid.core.ports import ProviderContext
from providers.gcp import asking
from providers.gcp.client import Client
from providers.gcp.errors import translated
from providers.gcp.gangs import GangLauncher
from providers.gcp.launching import Launcher, wait
from providers.gcp.machines import Knowledge
from providers.gcp.naming import CLUSTER_TAG, Place, encoded, owned_instance_id
from providers.gcp.offers import offered
from providers.gcp.params import Params, Pool
from providers.gcp.request import metadata
from providers.gcp.resources import Machine, Operation
from providers.gcp.showing import shown, state_of
from providers.gcp.undecided import Undecided
from providers.gcp.userdata import EXPIRY_KEY, expiry_text

_NOT_READY = "resourceNotReady"


class GcpProvider:
    """See `GangProvider`. Its ids are `projects/P/zones/Z/instances/NAME`.

    An instance carries two expiries. The node follows the one in its metadata, which `extend`
    moves, and turns itself off. Google deletes the instance after `max_life` in any case:
    `maxRunDuration` can be changed on stopped instances only, so nothing extends that.
    """

    def __init__(self, name: str, params: Params, context: ProviderContext) -> None:
        self.name = name
        self._params = params
        self._context = context
        self._pools = {pool.offer_id(name): pool for pool in params.pools}
        self._client = Client(
            name, params.project, endpoint=params.endpoint_url, timeout_s=params.call_timeout
        )
        self._undecided = Undecided(self._client, context.clock)
        self._launcher = Launcher(
            self._client,
            context.clock,
            context.cluster_id,
            wait_s=params.launch_wait,
            undecided=self._undecided,
        )
        self._gangs = GangLauncher(self._launcher)

    @property
    def list_lag_s(self) -> float:
        """See `Provider.list_lag_s`; Google promises nothing, so it is a setting."""
        return self._params.list_lag

    def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`. `pool_offers` says what is left out, and why."""
        return [offer for offer in self.pool_offers() if isinstance(offer, Offer)]

    def pool_offers(self) -> Sequence[Offered]:
        """See `CandidProvider.pool_offers`."""
        return [offered(pool, self.name, self._context) for pool in self._params.pools]

    def offline_offers(self) -> Sequence[Offered]:
        """See `OfflineProvider.offline_offers`: no call is needed for `pool_offers`."""
        return self.pool_offers()

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`. Waits up to `launch_wait` for Google to have the machine."""
        pool = self._pool(offer, spec)
        place = asking.place_of(self._params, pool, spec)
        with asking.refusing(self.name):
            body = asking.single(
                self._params, pool, offer, spec, token=token, join_token=join_token
            )
        with _without((join_token,)):
            self._launcher.launch(place, body, spec, token=token)
        return str(place)

    def launch_gang(
        self,
        offer: Offer,
        specs: Sequence[LaunchSpec],
        *,
        token: str,
        join_tokens: Mapping[str, str],
    ) -> Mapping[str, str]:
        """See `GangProvider.launch_gang`. Waits as `launch` does."""
        if not specs:
            raise self._invalid("a gang of nobody")
        pool = self._pool(offer, specs[0])
        with asking.refusing(self.name):
            body = asking.gang(
                self._params, pool, offer, specs, token=token, join_tokens=join_tokens
            )
        places = {s.instance_id: asking.place_of(self._params, pool, s) for s in specs}
        with _without(join_tokens.values()):
            self._gangs.launch(places, body, token=token)
        return {instance_id: str(place) for instance_id, place in places.items()}

    def list_instances(self) -> Sequence[CloudInstance]:
        """See `Provider.list_instances`.

        Ended instances vanish from Google's list. Launches that failed after they were accepted
        are shown as gone for a while, with the reason.
        """
        cluster_id = self._context.cluster_id
        machines = {
            machine.place: machine
            for machine in self._client.list_labelled(CLUSTER_TAG, encoded(cluster_id))
        }
        listed = [found for m in machines.values() if (found := self._look(m)) is not None]
        failed = [
            CloudInstance(
                instance_id=pending.instance_id,
                provider_id=str(place),
                state=CloudState.GONE,
                launched_at_s=pending.started_at_s,
                problem=pending.problem,
            )
            for place, pending in self._undecided.failed(machines.keys())
        ]
        return [*listed, *failed]

    def terminate(self, provider_ids: Collection[str]) -> None:
        """See `Provider.terminate`. An instance that is on its way out is left alone."""
        problems = []
        machines = self._own(provider_ids)
        for machine in machines:
            try:
                self._check(self._client.delete(machine.place), f"delete {machine.place}")
            except NotFoundError:
                continue
            except ProviderError as err:
                is_ending = state_of(machine) is CloudState.STOPPING
                if not (is_ending and err.code == _NOT_READY):
                    problems.append(err)
        for problem in problems:
            raise problem

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """See `Provider.extend`. The end that Google sets by `max_life` stays what it is."""
        alive = (CloudState.PENDING, CloudState.RUNNING)
        machines = [m for m in self._own(provider_ids) if state_of(m) in alive]
        if not machines:
            raise self._not_found(provider_ids)
        # All are asked for first, then waited for: together they take as long as one. The
        # trouble of one is no reason to let the others end.
        operations: list[Operation] = []
        problems: list[ProviderError] = []
        for machine in machines:
            try:
                operations.append(self._move_expiry(machine, until_s))
            except NotFoundError:
                continue  # it ended just now
            except ProviderError as err:
                problems.append(err)
        end_s = self._context.clock.monotonic_s() + self._params.call_timeout
        for operation in operations:
            try:
                self._confirm(operation, end_s=end_s)
            except ProviderError as err:
                problems.append(err)
        for problem in problems:
            raise problem
        if not operations:
            raise self._not_found(provider_ids)

    # --- parts ----------------------------------------------------------------------------

    def _pool(self, offer: Offer, spec: LaunchSpec) -> Pool:
        """Return what an offer stands for. Raises `InvalidRequestError`: it is not ours."""
        pool = self._pools.get(offer.offer_id)
        if pool is None:
            raise self._invalid(f"{offer.offer_id} is not an offer of this cloud")
        if spec.cluster_id != self._context.cluster_id:
            raise self._invalid(f"{spec.cluster_id} is not this cluster")
        return pool

    def _move_expiry(self, machine: Machine, until_s: float) -> Operation:
        items = {**machine.metadata, EXPIRY_KEY: expiry_text(until_s)}
        content = metadata(items, machine.metadata_fingerprint)
        return self._client.set_metadata(machine.place, content)

    def _confirm(self, operation: Operation, *, end_s: float) -> None:
        """Raise unless a new expiry is in force before `end_s`."""
        clock = self._context.clock
        left_s = max(0.0, end_s - clock.monotonic_s())
        done = wait(self._client, operation, clock=clock, limit_s=left_s)
        self._check(done, "extend a lease")
        if not done.is_done:
            text = "Google Cloud, extend a lease: not confirmed in time; asked again"
            raise TransientError(text, provider=self.name)

    def _look(self, machine: Machine) -> CloudInstance | None:
        """Return an instance as the port shows it; `None` when it is not this cluster's."""
        instance_id = self._instance_id(machine)
        if instance_id is None:
            return None
        if state_of(machine) is not CloudState.PENDING:
            self._undecided.forget([machine.place])
        return shown(machine, instance_id)

    def _instance_id(self, machine: Machine) -> str | None:
        return owned_instance_id(
            machine.labels, machine.place.name, cluster_id=self._context.cluster_id
        )

    def _own(self, provider_ids: Collection[str]) -> list[Machine]:
        """Return the machines of these ids that are this cluster's.

        One is asked for by name, since a list may lag; of several only those not in the list.

        Raises:
            NotFoundError: There is none.
        """
        places = {place for text in provider_ids if (place := Place.of(text)) is not None}
        found: list[Machine] = []
        if len(places) > 1:
            label = encoded(self._context.cluster_id)
            listed = self._client.list_labelled(CLUSTER_TAG, label)
            found = [machine for machine in listed if machine.place in places]
        for place in sorted(places - {m.place for m in found}, key=str):
            try:
                found.append(self._client.get(place))
            except NotFoundError:
                continue
        own = [machine for machine in found if self._instance_id(machine) is not None]
        if not own:
            raise self._not_found(provider_ids)
        return own

    def _check(self, operation: Operation, doing: str) -> None:
        """Raise if an operation failed."""
        for failure in operation.failures:
            raise translated(failure, provider=self.name, doing=doing)

    def _invalid(self, message: str) -> InvalidRequestError:
        return InvalidRequestError(message, provider=self.name)

    def _not_found(self, provider_ids: Collection[str]) -> NotFoundError:
        ids = ", ".join(sorted(provider_ids)) or "(none named)"
        return NotFoundError(f"no such instance: {ids}", provider=self.name, code="notFound")


@contextmanager
def _without(secrets: Iterable[str]) -> Iterator[None]:
    """Keep secrets out of errors: Google may repeat what it refuses, and errors are shown."""
    try:
        yield
    except ProviderError as err:
        words = str(err)
        for secret in filter(None, secrets):
            words = words.replace(secret, "***")
        if words == str(err):
            raise
        raise type(err)(words, provider=err.provider, code=err.code, scope=err.scope) from None


def make(name: str, raw: Mapping[str, object], context: ProviderContext) -> GcpProvider:
    """Return Google Cloud; see `hybrid.core.ports.MakeProvider`."""
    params = Params.model_validate(raw, context=Knowledge(context.catalog))
    return GcpProvider(name, params, context)

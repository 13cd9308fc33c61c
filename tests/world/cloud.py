"""A cloud in memory that can be as unkind as real ones are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import (
    CapacityError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    TransientError,
)
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from tests.world.clock import VirtualClock


@dataclass
class Machine:
    """One rented machine, as the cloud knows it.

    Attributes:
        expires_at_s: The expiry it was told last; `None` when that call never came.
        lease_end_s: When its own watcher ends it, by the monotonic clock: a jump of a wall
            clock ends nothing.
        ended_s: When it is gone, by the monotonic clock.
        ended_by: `terminate`, `lease` or `cloud`.
    """

    provider_id: str
    token: str
    join_token: str
    spec: LaunchSpec
    offer: Offer
    launched_at_s: float
    booted_s: float
    expires_at_s: float | None
    lease_end_s: float
    ended_s: float | None = None
    ended_by: str = ""
    problem: str = ""
    hidden_lists: int = 0
    has_joined: bool = False
    never_joins: bool = False


@dataclass
class SimCloud:
    """See `hybrid.core.ports.Provider`.

    Attributes:
        is_silent: Every call fails with TransientError.
        failing: Names of calls (`list`, `offers`, `terminate`, ...) that fail meanwhile.
        launch_faults: What the next launches do: an error to raise before anything is created;
            `"lost"`: create, then lose the answer; `"fails_later"`: accept, then end it with a
            problem, as Google Cloud does.
        fail_lists: So many lists fail once a machine is there.
        hide_lists: New machines are missing from this many lists.
        never_joins: New machines never become nodes.
        ends_slowly_s: Time from terminate to gone.
        forgets_ended: Ended machines leave the list at once, and calls for them are NotFound.
        shares_head_clock: The machines run on the head host, as the `local` provider's do, so
            its wall clock is theirs; otherwise the cloud's clock is always right.
        cluster_id: Whose machines it shows and touches; `""` for all, in a world of one cluster.
        machines: Of the whole account: clouds of several clusters may share them.
        retired_count: Machines that were removed from `machines`, so that no id is given twice.
        calls: Names of the calls made, for counting.
    """

    clock: VirtualClock
    offer_list: list[Offer]
    name: str = "sim"
    list_lag_s: float = 0.0
    boot_s: float = 30.0
    stock: int = 1_000
    is_silent: bool = False
    failing: set[str] = field(default_factory=set)
    launch_faults: list[ProviderError | str] = field(default_factory=list)
    fail_lists: int = 0
    hide_lists: int = 0
    never_joins: bool = False
    ends_slowly_s: float = 0.0
    forgets_ended: bool = False
    shares_head_clock: bool = False
    cluster_id: str = ""
    machines: dict[str, Machine] = field(default_factory=dict)
    retired_count: int = 0
    calls: list[str] = field(default_factory=list)

    # --- the port -------------------------------------------------------------------------

    def offers(self) -> Sequence[Offer]:
        self._call("offers")
        return [o.model_copy(update={"stock_count": self._left()}) for o in self.offer_list]

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        return self._rent("launch", offer, [spec], token, {spec.instance_id: join_token})[0]

    def launch_gang(
        self,
        offer: Offer,
        specs: Sequence[LaunchSpec],
        *,
        token: str,
        join_tokens: Mapping[str, str],
    ) -> Mapping[str, str]:
        names = tuple(spec.instance_id for spec in specs)
        assert 1 < len(specs) <= offer.max_gang, "more than the offer said"
        assert all(spec.gang == names for spec in specs), "not the gang that was asked for"
        ids = self._rent("launch_gang", offer, specs, token, join_tokens)
        return dict(zip(names, ids, strict=True))

    def _rent(
        self,
        call: str,
        offer: Offer,
        specs: Sequence[LaunchSpec],
        token: str,
        join_tokens: Mapping[str, str],
    ) -> list[str]:
        """Rent all or none."""
        self._call(call)
        for spec in specs:
            assert spec.tags["hybrid-cluster"] == spec.cluster_id, "created without an owner tag"
            assert spec.tags["hybrid-instance"] == spec.instance_id, "created without its id"
            assert int(spec.tags["hybrid-epoch"]) == spec.epoch, "created without its epoch"
        fault = self.launch_faults.pop(0) if self.launch_faults else None
        if isinstance(fault, ProviderError):
            raise fault
        machines = [m for m in self._ours() if m.token == token]
        if machines:
            assert [m.spec for m in machines] == list(specs), "the same token, other parameters"
            asked, first = _without_stock(offer), _without_stock(machines[0].offer)
            assert asked == first, "the same token with another offer"
        else:
            if offer.offer_id not in {o.offer_id for o in self.offer_list}:
                words = f"{offer.offer_id or 'an offer without id'} is not sold here"
                raise InvalidRequestError(words, provider=self.name, code="NoSuchOffer")
            if self._left() < len(specs):
                raise CapacityError("sold out", provider=self.name, code="NoStock")
            for spec in specs:
                secret = join_tokens[spec.instance_id]
                machines.append(self.create(offer, spec, token=token, join_token=secret))
            if fault == "fails_later":
                for machine in machines:
                    machine.problem = "quota exceeded while creating"
                    self._end(machine, "cloud")
        if fault == "lost":
            raise TransientError("the answer was lost", provider=self.name)
        return [machine.provider_id for machine in machines]

    def list_instances(self) -> Sequence[CloudInstance]:
        self._call("list")
        if self.machines and self.fail_lists > 0:
            self.fail_lists -= 1
            raise TransientError("no answer", provider=self.name)
        self.expire()
        seen = []
        for machine in self._ours():
            # Never for longer than promised, however few lists were read meanwhile.
            is_late = 0 < self.list_lag_s < self._now_s() - machine.launched_at_s
            if machine.hidden_lists > 0 and not is_late:
                machine.hidden_lists -= 1
            elif self.is_alive(machine) or not self.forgets_ended:
                seen.append(self._entry(machine))
        return seen

    def terminate(self, provider_ids: Collection[str]) -> None:
        self._call("terminate")
        known = self._known(provider_ids)
        for machine in known:
            if machine.ended_s is None:
                self._end(machine, "terminate", in_s=self.ends_slowly_s)

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        self._call("extend")
        for machine in self._known(provider_ids):
            machine.expires_at_s = until_s
            machine.lease_end_s = self._lease_end_s(until_s)

    def tidy(self) -> None:
        self._call("tidy")

    # --- the world's side -----------------------------------------------------------------

    def create(
        self, offer: Offer, spec: LaunchSpec, *, token: str = "", join_token: str = ""
    ) -> Machine:
        """Make a machine, whoever asked for it."""
        provider_id = f"{self.name}-m{self.retired_count + len(self.machines) + 1}"
        machine = Machine(
            provider_id=provider_id,
            token=token or f"no-token-{provider_id}",
            join_token=join_token,
            spec=spec,
            offer=offer,
            launched_at_s=self._now_s(),
            booted_s=self.clock.monotonic_s() + self.boot_s,
            expires_at_s=spec.expires_at_s,
            lease_end_s=self._lease_end_s(spec.expires_at_s),
            hidden_lists=self.hide_lists,
            never_joins=self.never_joins,
        )
        self.machines[provider_id] = machine
        return machine

    def expire(self) -> None:
        """End machines whose lease is over, as their own watchers would."""
        now_s = self.clock.monotonic_s()
        for machine in self.machines.values():
            if machine.ended_s is None and now_s >= machine.lease_end_s:
                machine.ended_s, machine.ended_by = machine.lease_end_s, "lease"

    def is_alive(self, machine: Machine) -> bool:
        return machine.ended_s is None or machine.ended_s > self.clock.monotonic_s()

    def alive(self) -> list[Machine]:
        self.expire()
        return [m for m in self.machines.values() if self.is_alive(m)]

    def booted(self) -> list[Machine]:
        """Machines whose node should be in Ray by now."""
        now_s = self.clock.monotonic_s()
        return [
            m for m in self.alive() if not m.never_joins and not m.problem and now_s >= m.booted_s
        ]

    def kill(self, machine: Machine, problem: str = "") -> None:
        """The cloud ends a machine by itself."""
        machine.problem = problem
        self._end(machine, "cloud")

    # --- inside ---------------------------------------------------------------------------

    def _now_s(self) -> float:
        return self.clock.now_s() if self.shares_head_clock else self.clock.true_s()

    def _lease_end_s(self, until_s: float) -> float:
        return self.clock.monotonic_s() + until_s - self._now_s()

    def _end(self, machine: Machine, by: str, *, in_s: float = 0.0) -> None:
        machine.ended_s, machine.ended_by = self.clock.monotonic_s() + in_s, by

    def _ours(self) -> list[Machine]:
        """Return the machines that carry our owner tag."""
        all_of_them = list(self.machines.values())
        if not self.cluster_id:
            return all_of_them
        return [m for m in all_of_them if m.spec.cluster_id == self.cluster_id]

    def _known(self, provider_ids: Collection[str]) -> list[Machine]:
        assert provider_ids, "a call about nothing"
        assert "" not in provider_ids, "a call about a machine without an id"
        known = [m for m in self._ours() if m.provider_id in provider_ids]
        if self.forgets_ended:
            known = [m for m in known if self.is_alive(m)]
        if not known:
            raise NotFoundError("no such machine", provider=self.name, code="NotFound")
        return known

    def _left(self) -> int:
        return self.stock - len(self.alive())

    def _entry(self, machine: Machine) -> CloudInstance:
        state = CloudState.RUNNING
        if not self.is_alive(machine):
            state = CloudState.GONE
        elif machine.ended_s is not None:
            state = CloudState.STOPPING
        return CloudInstance(
            instance_id=machine.spec.instance_id,
            provider_id=machine.provider_id,
            state=state,
            launched_at_s=machine.launched_at_s,
            expires_at_s=machine.expires_at_s,
            offer_mark=machine.spec.tags.get("hybrid-offer", ""),
            problem=machine.problem,
        )

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.is_silent or name in self.failing:
            raise TransientError("no answer", provider=self.name)


def _without_stock(offer: Offer) -> Offer:
    """Return what a create call says of an offer: not how many were left when it was read."""
    return offer.model_copy(update={"stock_count": None})

"""A cloud in memory that can be as unkind as real ones are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from hybrid.core.errors import CapacityError, NotFoundError, ProviderError, TransientError
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from tests.world.clock import VirtualClock


@dataclass
class Machine:
    """One rented machine, as the cloud knows it."""

    provider_id: str
    token: str
    spec: LaunchSpec
    offer: Offer
    launched_at_s: float
    expires_at_s: float
    ended_at_s: float | None = None
    problem: str = ""
    hidden_lists: int = 0


@dataclass
class SimCloud:
    """See `hybrid.core.ports.Provider`.

    Attributes:
        is_silent: Every call fails with TransientError.
        launch_faults: What the next launches do: an error to raise before anything is created,
            or `"lost"`: create, then lose the answer.
        hide_lists: New machines are missing from this many lists.
        never_joins: Machines never become nodes.
        ends_slowly_s: Time from terminate to gone.
        calls: Names of the calls made, for counting.
    """

    clock: VirtualClock
    offer_list: list[Offer]
    name: str = "sim"
    list_lag_s: float = 0.0
    boot_s: float = 30.0
    stock: int = 1_000
    is_silent: bool = False
    launch_faults: list[ProviderError | str] = field(default_factory=list)
    hide_lists: int = 0
    never_joins: bool = False
    ends_slowly_s: float = 0.0
    machines: dict[str, Machine] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    hook: Callable[[str], None] = lambda _: None

    def offers(self) -> Sequence[Offer]:
        self._call("offers")
        return [o.model_copy(update={"stock_count": self._left()}) for o in self.offer_list]

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        self._call("launch")
        assert spec.tags["hybrid-cluster"] == spec.cluster_id, "created without an owner tag"
        fault = self.launch_faults.pop(0) if self.launch_faults else None
        if isinstance(fault, ProviderError):
            raise fault
        same = [m for m in self.machines.values() if m.token == token]
        if same and same[0].spec != spec:
            raise AssertionError("the same token with other parameters")
        if not same:
            if self._left() <= 0:
                raise CapacityError("sold out", provider=self.name, code="NoStock")
            provider_id = f"m-{len(self.machines) + 1}"
            now_s = self.clock.now_s()
            self.machines[provider_id] = Machine(
                provider_id=provider_id,
                token=token,
                spec=spec,
                offer=offer,
                launched_at_s=now_s,
                expires_at_s=spec.expires_at_s,
                hidden_lists=self.hide_lists,
            )
            same = [self.machines[provider_id]]
        self.hook("launch.done")
        if fault == "lost":
            raise TransientError("the answer was lost", provider=self.name)
        return same[0].provider_id

    def list_instances(self) -> Sequence[CloudInstance]:
        self._call("list")
        self.expire()
        seen = []
        for machine in self.machines.values():
            if machine.hidden_lists > 0:
                machine.hidden_lists -= 1
                continue
            seen.append(self._entry(machine))
        return seen

    def terminate(self, provider_ids: Collection[str]) -> None:
        self._call("terminate")
        known = [self.machines[i] for i in provider_ids if i in self.machines]
        if not known:
            raise NotFoundError("no such machine", provider=self.name, code="NotFound")
        for machine in known:
            if machine.ended_at_s is None:
                machine.ended_at_s = self.clock.now_s() + self.ends_slowly_s
        self.hook("terminate.done")

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        self._call("extend")
        for provider_id in provider_ids:
            if provider_id not in self.machines:
                raise NotFoundError("no such machine", provider=self.name)
            self.machines[provider_id].expires_at_s = until_s

    def expire(self) -> None:
        """End machines whose lease is over, as their own watchers would."""
        for machine in self.machines.values():
            if machine.ended_at_s is None and self.clock.now_s() >= machine.expires_at_s:
                machine.ended_at_s = machine.expires_at_s

    def is_alive(self, machine: Machine) -> bool:
        return machine.ended_at_s is None or machine.ended_at_s > self.clock.now_s()

    def alive(self) -> list[Machine]:
        self.expire()
        return [m for m in self.machines.values() if self.is_alive(m)]

    def booted(self) -> list[Machine]:
        """Machines whose node should be in Ray by now."""
        now_s = self.clock.now_s()
        return [
            m
            for m in self.alive()
            if not self.never_joins and not m.problem and now_s - m.launched_at_s >= self.boot_s
        ]

    def _left(self) -> int:
        return self.stock - len(self.alive())

    def _entry(self, machine: Machine) -> CloudInstance:
        state = CloudState.RUNNING
        if not self.is_alive(machine):
            state = CloudState.GONE
        elif machine.ended_at_s is not None:
            state = CloudState.STOPPING
        return CloudInstance(
            instance_id=machine.spec.instance_id,
            provider_id=machine.provider_id,
            state=state,
            launched_at_s=machine.launched_at_s,
            expires_at_s=machine.expires_at_s,
            problem=machine.problem,
        )

    def _call(self, name: str) -> None:
        self.calls.append(name)
        self.hook(name)
        if self.is_silent:
            raise TransientError("no answer", provider=self.name)

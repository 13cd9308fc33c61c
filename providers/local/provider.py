"""The local cloud behind the port `hybrid.core.ports.Provider`."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hybrid.core.bootstrap import (
    Preflight,
    RayOptions,
    ray_drain_command,
    ray_node_command,
    ray_node_environment,
    ray_node_expected,
    rented_node,
)
from hybrid.core.errors import (
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    TransientError,
)
from hybrid.core.models import CloudInstance, CloudState, LaunchSpec, Offer
from hybrid.core.ports import ProviderContext
from providers.local.machine import Machine, MachineError, Record
from providers.local.params import Params, Pool
from providers.local.store import Store, to_json

GONE_LISTED_S = 600.0
"""How long a gone instance stays in the list, as with real clouds."""

SHARED_STORE_BYTES = 80_000_000
"""Object store of an instance where nobody says: all of them share this machine's memory."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}")
_NEVER_S = 100_000_000.0


class LocalProvider:
    """See `Provider`. Its ids are `local-<our id>`, with `.2` behind it for a second attempt.

    Attributes:
        ray_python: Interpreter that `ray start` runs in; tests put a fake there.
    """

    list_lag_s = 0.0

    def __init__(
        self,
        name: str,
        params: Params,
        context: ProviderContext,
        *,
        ray_python: str = sys.executable,
    ) -> None:
        self.name = name
        self.ray_python = ray_python
        self._params = params
        self._context = context
        self._store = Store(Path(context.state_dir))
        self._pools = {pool.offer(name).offer_id: pool for pool in params.pools}

    def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`."""
        taken = self._taken()
        return [
            pool.offer(self.name).model_copy(
                update={"stock_count": self._left(pool, taken.get(offer_id, 0))}
            )
            for offer_id, pool in self._pools.items()
        ]

    def offline_offers(self) -> Sequence[Offer]:
        """See `OfflineProvider.offline_offers`: the store is on this machine."""
        return self.offers()

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`. The record is on disk, whole, before any process starts."""
        name = self._folder_name(spec)
        try:
            with self._store.locked():
                machine = self._store.find(name)
                if machine is None:
                    machine = self._rent(offer, spec, name, token=token, join_token=join_token)
                elif machine.record.token != token:
                    raise ConflictError(
                        f"instance {name} exists under another token",
                        provider=self.name,
                        code="TokenMismatch",
                    )
            machine.start()
        except (OSError, MachineError) as err:
            raise TransientError(f"local instance {name}: {err}", provider=self.name) from err
        return machine.record.provider_id

    def list_instances(self) -> Sequence[CloudInstance]:
        """See `Provider.list_instances`."""
        now_s = self._context.clock.now_s()
        listed = []
        try:
            for machine in self._own_machines():
                gone_at_s = machine.gone_at_s()
                if gone_at_s is not None and now_s - gone_at_s > GONE_LISTED_S:
                    self._store.forget(machine)
                else:
                    listed.append(machine.look(now_s=now_s))
        except OSError as err:
            raise TransientError(f"cannot list: {err}", provider=self.name) from err
        return listed

    def terminate(self, provider_ids: Collection[str]) -> None:
        """See `Provider.terminate`."""
        try:
            for machine in self._machines_of(provider_ids):
                if not machine.is_gone:
                    machine.stop()
        except (OSError, MachineError) as err:
            raise TransientError(f"cannot terminate: {err}", provider=self.name) from err

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """See `Provider.extend`."""
        try:
            live = [m for m in self._machines_of(provider_ids) if not m.is_gone]
            for machine in live:
                machine.extend(until_s)
        except OSError as err:
            raise TransientError(f"cannot extend: {err}", provider=self.name) from err
        if not live:
            raise self._not_found(provider_ids)

    # --- launching -------------------------------------------------------------------------

    def _rent(
        self, offer: Offer, spec: LaunchSpec, name: str, *, token: str, join_token: str
    ) -> Machine:
        pool = self._pools.get(offer.offer_id)
        if pool is None:
            raise InvalidRequestError(
                f"{offer.offer_id} is not an offer of this cloud", provider=self.name
            )
        if self._left(pool, self._taken().get(offer.offer_id, 0)) < 1:
            raise CapacityError(f"{offer.offer_id} is sold out", provider=self.name, code="SoldOut")
        record = Record(
            provider_id=f"{self.name}-{name}",
            token=token,
            offer_id=offer.offer_id,
            spec=spec,
            launched_at_s=self._context.clock.now_s(),
        )
        path = self._store.path(name)
        files = {
            "node.json": to_json(self._node(pool, offer, spec, path)),
            "lease": f"{spec.expires_at_s:.3f}",
            "join_token": join_token,
        }
        return self._store.create(name, record, files)

    def _node(self, pool: Pool, offer: Offer, spec: LaunchSpec, path: Path) -> Mapping[str, object]:
        """Return the node.json of an instance; it plays the part of user data."""
        short = hashlib.sha256(f"{self.name}/{path.name}".encode()).hexdigest()[:8]
        try:
            plan = rented_node(
                spec.model_copy(update={"ray": self._ray_options(spec)}),
                offer.shape,
                python=self.ray_python,
                temp_dir=f"{self._context.ray_dir}/{short}",
                preflight=Preflight(logical_gpus=True),
            )
        except ValueError as err:
            raise InvalidRequestError(str(err), provider=self.name) from err
        fail = pool.fail
        takeback = {"after_s": fail.interrupt_after, "notice_s": fail.notice}
        waits = [self.ray_python, "-P", "-c", f"import time; time.sleep({_NEVER_S})"]
        return {
            "id": path.name,
            "cluster_id": spec.cluster_id,
            "role": "instance",
            "command": waits if fail.never_joins else ray_node_command(plan),
            "env": ray_node_environment(plan),
            "temp_dir": plan.temp_dir,
            "join": {
                "url": spec.controller_url,
                "instance_id": spec.instance_id,
                "join_token_file": str(path / "join_token"),
            },
            "boot_delay_s": pool.boot_delay,
            "expected": ray_node_expected(plan, spec),
            "lease_file": str(path / "lease"),
            "drain_command": ray_drain_command(plan),
            **({"takeback": takeback} if fail.interrupt_after is not None else {}),
            **({"start_limit_s": _NEVER_S} if fail.never_joins else {}),
            **({"ports": list(self._params.ports)} if self._params.ports else {}),
        }

    def _ray_options(self, spec: LaunchSpec) -> RayOptions:
        """Return the cluster's, with a store that lets nodes share this machine's memory."""
        own = self._params.object_store or spec.ray.object_store_bytes or SHARED_STORE_BYTES
        return spec.ray.model_copy(update={"object_store_bytes": own})

    def _folder_name(self, spec: LaunchSpec) -> str:
        name = spec.instance_id + (f".{spec.attempt}" if spec.attempt > 1 else "")
        if not _NAME.fullmatch(name) or spec.cluster_id != self._context.cluster_id:
            raise InvalidRequestError(
                f"{spec.cluster_id}/{name} is not an instance of this cluster", provider=self.name
            )
        return name

    # --- what there is ---------------------------------------------------------------------

    def _own_machines(self) -> list[Machine]:
        cluster_id = self._context.cluster_id
        return [m for m in self._store.machines() if m.record.spec.cluster_id == cluster_id]

    def _machines_of(self, provider_ids: Collection[str]) -> list[Machine]:
        found = [m for m in self._own_machines() if m.record.provider_id in provider_ids]
        if not found:
            raise self._not_found(provider_ids)
        return found

    def _not_found(self, provider_ids: Collection[str]) -> NotFoundError:
        ids = ", ".join(sorted(provider_ids)) or "(none named)"
        return NotFoundError(f"no such instance: {ids}", provider=self.name, code="NotFound")

    def _taken(self) -> dict[str, int]:
        """Return how many instances of each offer hold stock."""
        now_s = self._context.clock.now_s()
        try:
            machines = self._store.machines()
            held = [m for m in machines if m.look(now_s=now_s).state is not CloudState.GONE]
        except OSError as err:
            raise TransientError(f"cannot count the stock: {err}", provider=self.name) from err
        taken: dict[str, int] = {}
        for machine in held:
            taken[machine.record.offer_id] = taken.get(machine.record.offer_id, 0) + 1
        return taken

    @staticmethod
    def _left(pool: Pool, taken: int) -> int:
        return 0 if pool.fail.sold_out else max(0, pool.stock - taken)


def make(name: str, raw: Mapping[str, object], context: ProviderContext) -> LocalProvider:
    """Return the local cloud; see `hybrid.core.ports.MakeProvider`."""
    return LocalProvider(name, Params.model_validate(raw), context)

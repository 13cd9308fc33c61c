"""A large cluster, the same at each run: 1,000 nodes, and 100,000 tasks in 300 shapes that wait.

Ray's side is the very message that Ray's head would send, served over gRPC, so that a tick pays
for reading it. The ledger is a real SQLite file. Providers and hosts answer at once.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.adapters.ray import RayCluster
from hybrid.adapters.ray.gcs import _wire
from hybrid.control.params import ControlParams
from hybrid.core.models import (
    Caps,
    CloudInstance,
    CloudState,
    Instance,
    InstanceState,
    LaunchSpec,
    Offer,
    Reason,
)
from hybrid.core.policy.market import rented_labels
from hybrid.core.policy.params import PolicyParams
from tests.world.world import World

_GIB = 2**30
_ZONES = ("a", "b", "c")
_TYPES = (1, 2, 4, 8)
_PROVIDERS = ("alpha", "beta", "gamma")
_STATES = {"running": 1, "idle": 3}  # numbers of Ray's NodeStatus
_IN = 1  # number of Ray's label operator "one of"
_WAITED_S = 900.0


@dataclass(frozen=True)
class Size:
    """How large.

    Attributes:
        hosts: On-prem nodes, beside the head.
        rented: Cloud nodes.
        shapes: Kinds of requests that wait.
        tasks: Requests that wait, over all shapes.
        gangs: Placement groups of eight bundles that wait.
    """

    hosts: int = 399
    rented: int = 600
    shapes: int = 300
    tasks: int = 100_000
    gangs: int = 0

    @property
    def nodes(self) -> int:
        """All nodes, the head too."""
        return 1 + self.hosts + self.rented


def make_offers() -> list[Offer]:
    """Return 36 offers: three providers, three zones, four sizes."""
    return [
        _offer(provider, zone, gpus, price)
        for provider, price in zip(_PROVIDERS, (2.0, 2.2, 1.9), strict=True)
        for zone in _ZONES
        for gpus in _TYPES
    ]


def _offer(provider: str, zone: str, gpus: int, price: float) -> Offer:
    return Offer(
        offer_id=f"{provider}/r1/{zone}/g{gpus}/on_demand",
        provider=provider,
        region="r1",
        zone=zone,
        instance_type=f"g{gpus}",
        shape={"GPU": gpus, "CPU": 12.0 * gpus, "memory": 64.0 * _GIB * gpus},
        accelerator="A100",
        gpu_count=gpus,
        usd_per_hour=price * gpus * (1 + _ZONES.index(zone) / 100),
    )


# --- what Ray says ------------------------------------------------------------------------


def wire_reply(size: Size, instances: Sequence[Instance], *, seed: int = 7) -> bytes:
    """Return Ray's answer for a busy cluster, as it comes over the network."""
    rng = random.Random(seed)
    reply = _wire("autoscaler_pb2").GetClusterResourceStateReply()
    state = reply.cluster_resource_state
    _add_node(state, "head", {"CPU": 8.0}, {"site": "onprem", "role": "head"}, rng)
    for number in range(size.hosts):
        name = f"host-{number}"
        shape = {"GPU": 8.0, "CPU": 96.0, "memory": 512.0 * _GIB}
        _add_node(state, name, shape, {"site": "onprem", "hybrid-host": name}, rng)
    for instance in instances:
        raw = _add_node(
            state, instance.instance_id, instance.offer.shape, instance.spec.labels, rng
        )
        raw.instance_id = instance.instance_id
    for count, (shape, places) in zip(_counts(size), _kinds(size.shapes), strict=True):
        request = state.pending_resource_requests.add(count=count).request
        request.resources_bundle.update(shape)
        _add_places(request, places)
    for number in range(size.gangs):
        _add_gang(state, number)
    return bytes(reply.SerializeToString(deterministic=True))


def _add_node(state: Any, name: str, total: Any, labels: Any, rng: random.Random) -> Any:
    is_idle = rng.random() < 0.02
    raw = state.node_states.add(
        node_id=name.encode().rjust(28, b"-"),
        status=_STATES["idle" if is_idle else "running"],
        idle_duration_ms=30_000 if is_idle else 0,
        node_activity=[] if is_idle else ["Resource: GPU currently in use."],
        node_ip_address="10.0.0.1",
    )
    raw.total_resources.update({**total, "node:10.0.0.1": 1.0, "object_store_memory": 1e9})
    # Most GPUs are taken; what is free differs from node to node, as on a real cluster.
    for resource, amount in total.items():
        share = 1.0 if is_idle else rng.choice((0.0, 0.0, 0.0, 0.0, 0.125, 0.25))
        if share:  # Ray leaves out what is used up
            raw.available_resources[resource] = amount * share
    raw.labels.update({"ray.io/node-id": name, **labels})
    return raw


def _kinds(count: int) -> Iterator[tuple[dict[str, float], tuple[str, ...]]]:
    """Yield different shapes, each with the sites it accepts, the preferred first."""
    accepted = (("onprem", "cloud"), (), ("cloud",), ("onprem",))
    for number in range(count):
        gpus = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)[number % 6]
        shape = {"GPU": gpus, "CPU": 1.0 + number // 6 % 10, "memory": (1.0 + number // 60) * _GIB}
        yield shape, accepted[number % 7 % 4]


def _counts(size: Size) -> list[int]:
    each, rest = divmod(size.tasks, size.shapes)
    return [each + (number < rest) for number in range(size.shapes)]


def _add_places(request: Any, places: Sequence[str]) -> None:
    for site in places:
        selector = request.label_selectors.add()
        selector.label_constraints.add(label_key="site", operator=_IN, label_values=[site])


def _add_gang(state: Any, number: int) -> None:
    raw = state.pending_gang_resource_requests.add(
        details=f"{number:036x}:{('PACK', 'STRICT_SPREAD')[number % 2]}|PENDING"
    )
    bundles = raw.bundle_selectors.add()
    for _ in range(8):
        request = bundles.resource_requests.add()
        request.resources_bundle.update({"GPU": float(1 + number % 8), "CPU": 4.0})
        _add_places(request, ("cloud",))


@contextmanager
def serving(reply: bytes) -> Iterator[str]:
    """Answer as Ray's head would; yields its address."""
    import grpc

    handler = grpc.unary_unary_rpc_method_handler(lambda _request, _context: reply)
    service = grpc.method_handlers_generic_handler(
        "ray.rpc.autoscaler.AutoscalerStateService", {"GetClusterResourceState": handler}
    )
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


# --- the controller -----------------------------------------------------------------------


@dataclass
class ReadyCloud:
    """A provider whose answers are ready: what it costs is not part of a tick."""

    name: str
    offer_list: list[Offer]
    list_lag_s: float = 0.0
    entries: list[CloudInstance] = field(default_factory=list)

    def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`."""
        return self.offer_list

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`."""
        del offer, token, join_token
        self.entries.append(_entry(spec.instance_id, spec.expires_at_s))
        return self.entries[-1].provider_id

    def list_instances(self) -> Sequence[CloudInstance]:
        """See `Provider.list_instances`."""
        return self.entries

    def terminate(self, provider_ids: Collection[str]) -> None:
        """See `Provider.terminate`."""

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """See `Provider.extend`."""


def _entry(instance_id: str, expires_at_s: float) -> CloudInstance:
    return CloudInstance(
        instance_id=instance_id,
        provider_id=f"m-{instance_id}",
        state=CloudState.RUNNING,
        launched_at_s=expires_at_s - 3600.0,
        expires_at_s=expires_at_s,
    )


def make_params(*, caps: Caps) -> ControlParams:
    """Return the settings of a production cluster, with caps."""
    return ControlParams(caps=caps, policy=PolicyParams())


@contextmanager
def big_world(folder: Path, size: Size, *, room: int) -> Iterator[World]:
    """Yield a world that has seen one tick, with everything waiting for longer than allowed.

    Args:
        folder: Of its ledger.
        size: How large.
        room: How many more instances the cap allows.
    """
    params = make_params(caps=Caps(node_count=size.rented + room))
    world = World(folder, params, make_offers(), host_count=size.hosts)
    instances = _rent(world, size.rented)
    world.boot()  # a controller reads the ledger once, when it starts
    clouds = {
        name: ReadyCloud(name, [o for o in world.offers if o.provider == name])
        for name in _PROVIDERS
    }
    for instance in instances:
        clouds[instance.offer.provider].entries.append(
            _entry(instance.instance_id, instance.lease_until_s or 0.0)
        )
    loop = world.loop
    loop.clouds.providers = list(clouds.values())
    with serving(wire_reply(size, instances)) as address:
        cluster = RayCluster(address, "", timeout_s=30.0)
        loop.ray.cluster = cluster
        world.head.is_up = True
        world.fleet.joined = set(world.fleet.shapes)
        # Seen, found to wait for too long, and found so for long enough to spend money.
        for _ in range(3):
            world.clock.advance(_WAITED_S)
            tick(world)
        try:
            yield world
        finally:
            cluster.close()
            world.ledger.close()


def tick(world: World) -> None:
    """Do what the controller does each tick, the view for the API included."""
    world.clock.advance(world.params.tick_s)
    world.desk.tick_started()
    world.loop.tick()
    world.desk.publish()


def _rent(world: World, count: int) -> list[Instance]:
    now_s = world.clock.now_s()
    offers = world.offers
    rented = []
    for number in range(count):
        offer = offers[number % len(offers)]
        name = f"i-{number:010x}"
        spec = LaunchSpec(
            cluster_id=world.ledger.cluster_id,
            instance_id=name,
            epoch=1,
            head_address="127.0.0.1:1",
            controller_url="http://127.0.0.1:2",
            labels=rented_labels(offer),
            expires_at_s=now_s + 1e6,
            ray_version="2",
            python_version="3",
        )
        asked = Instance(
            instance_id=name,
            offer=offer,
            spec=spec,
            token=f"{number:040x}",
            state=InstanceState.REQUESTED,
            state_at_s=now_s,
            created_at_s=now_s,
            reason=Reason(code="queue_wait", message="it waited for too long"),
            lease_until_s=spec.expires_at_s,
        )
        world.ledger.request(asked, caps=Caps(), exit_s=0.0, now_s=now_s)
        running = asked.model_copy(
            update={
                "state": InstanceState.RUNNING,
                "provider_id": f"m-{name}",
                "node_id": name.encode().rjust(28, b"-").hex(),
                "joined_at_s": now_s,
                "first_listed_at_s": now_s,
            }
        )
        world.ledger.save(running)
        rented.append(running)
    return rented

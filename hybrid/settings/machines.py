"""Settings of what exists: the head, Ray, the on-prem hosts and the clouds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from hybrid.core.quantity import CountRange, GpuRequest
from hybrid.settings.fields import (
    AutoPort,
    Count,
    Duration,
    Flag,
    Gpus,
    GpusOrAuto,
    HeadAddress,
    HostAddress,
    HostName,
    Infra,
    MigProfile,
    MpsClients,
    NodeLabels,
    OptionalPort,
    PortRange,
    PositiveCount,
    PositiveDuration,
    Price,
    PythonPath,
    Size,
    SshOptions,
    StoreSize,
    Text,
    VersionText,
)
from hybrid.settings.scalars import resolve
from hybrid.settings.section import Section

RAY_WORKER_PORTS = CountRange(low=10_002, high=19_999)
"""Where Ray puts its workers unless it is told otherwise."""

RAY_NODE_PORTS = CountRange(low=20_000, high=29_999)
"""Where the node program puts Ray's own parts, on every node; `hybrid.node.orders` has the same."""

_SHARED_STORE_BYTES = 80_000_000  # about the least that Ray accepts

_PER_HOUR = re.compile(r"([a-z]{3})_per_hour")


class Head(Section):
    """The head of the Ray cluster."""

    address: HeadAddress = Field(
        "local",
        description="IP address at which nodes reach this machine, such as 10.0.0.5. `local`: "
        "nodes run on this machine only.",
    )
    cpus: Count = Field(1, description="CPUs that work may use on the head.")
    gpus: Count = Field(0, description="GPUs that work may use on the head.")
    memory_bytes: Size | None = Field(None, description="Memory for work; Ray's choice if absent.")
    port: AutoPort = Field(6379, description="Ray's GCS, which every node must reach.")
    dashboard_port: AutoPort = Field(8265, description="Ray's dashboard and Jobs API.")
    client_port: OptionalPort = Field("off", description="Ray Client (`ray://`).")

    @property
    def node_ip(self) -> str:
        """The address at which nodes reach the head; `""` when they run beside it only."""
        return "" if self.address == "local" else self.address


class Health(Section):
    """How Ray finds out that a node is dead. The defaults find it in about 11 seconds."""

    initial_delay_s: Duration = Field(2.0, description="Before the first check of a new node.")
    period_s: PositiveDuration = Field(2.0, description="Between two checks.")
    timeout_s: PositiveDuration = Field(3.0, description="After which one check has failed.")
    failure_threshold: PositiveCount = Field(3, description="Failed checks that mean dead.")
    keepalive_time_s: PositiveDuration = Field(10.0, description="Between two gRPC keepalives.")
    keepalive_timeout_s: PositiveDuration = Field(
        5.0,
        description="After which a keepalive has failed. Without it work on a node that "
        "vanished from the network is not retried for minutes.",
    )


class Ray(Section):
    """Ray itself, the same on every node."""

    version: Text | None = Field(None, description="Must equal the installed Ray, if given.")
    object_store_bytes: StoreSize | None = Field(
        None,
        description="Object store of each node, own or rented; `auto` leaves it to Ray, which "
        "takes 30 % of the machine's memory. If absent: 80MB for nodes that share this machine, "
        "`auto` for those with a machine of their own.",
    )
    worker_ports: PortRange = Field(
        None,
        description="Ports of Ray's workers on every node, own or rented, for a firewall between "
        "nodes, such as 30000..31999; `auto` takes any free ones, as nodes that share a machine "
        "need.",
    )
    max_shapes: PositiveCount = Field(
        1_000, description="Shapes of waiting work that a node reports; Ray's own limit is 100."
    )
    health: Health = Field(default_factory=Health, description="Failure detection.")

    def store_bytes(self, *, is_shared: bool) -> int | None:
        """Return the object store of a node; `None` leaves it to Ray.

        Args:
            is_shared: Other nodes run on the same machine and want a part of its memory.
        """
        if self.object_store_bytes is None:
            return _SHARED_STORE_BYTES if is_shared else None
        return None if self.object_store_bytes == "auto" else self.object_store_bytes


class Host(Section):
    """A machine of your own."""

    name: HostName = Field(description="Unique; shown in `hybrid nodes`.")
    address: HostAddress = Field(
        "local",
        description="Where it is: what ssh takes, such as ops@10.0.0.7 or ssh://ops@10.0.0.7:2222. "
        "`local`: a node of this machine.",
    )
    python: PythonPath | None = Field(
        None, description="Its interpreter that has Ray, over SSH; onprem.python if absent."
    )
    accelerators: GpusOrAuto | None = Field(
        None,
        description="Its GPUs, such as A100:8 or GPU:4; over SSH also `auto`, which takes all that "
        "its driver lists. None if absent.",
    )
    cpus: PositiveCount | None = Field(None, description="Its CPUs; Ray counts them if absent.")
    memory_bytes: Size | None = Field(None, description="Memory for work; Ray's choice if absent.")
    mps: MpsClients | None = Field(
        None,
        description="Over SSH: share each GPU among so many jobs by NVIDIA's MPS. Its daemon runs "
        "while the node does; jobs ask for parts, such as `--gpus 0.25`.",
    )
    mig: MigProfile | None = Field(
        None,
        description="Over SSH: use the MIG devices of this profile, such as 1g.10gb, as GPUs, "
        "instead of the cards that `accelerators` names. They must be there.",
    )
    labels: NodeLabels = Field(default_factory=dict, description="Ray labels of your own.")

    @property
    def is_local(self) -> bool:
        """Whether it is a node of this machine."""
        return self.address == "local"

    @property
    def gpus(self) -> GpuRequest | None:
        """GPUs that the configuration names; `None` for none, and for those that are found."""
        return None if self.accelerators == "auto" else self.accelerators

    @property
    def gpu_count(self) -> int | None:
        """GPUs of the host; `None` when its driver is to say."""
        if self.accelerators == "auto" or self.mig:
            return None
        return self.accelerators.count if self.accelerators else 0


class SshAccess(Section):
    """How hosts are reached: the system's `ssh`, with your own ~/.ssh/config, keys and agent."""

    options: SshOptions = Field((), description="As after `ssh -o`, such as ProxyJump=bastion.")
    config: Text | None = Field(None, description="Read instead of ~/.ssh/config.")
    connect_limit_s: PositiveDuration = Field(
        10.0, description="After which a host that does not answer counts as away."
    )


class Onprem(Section):
    """The machines of your own: the fixed base, never terminated."""

    python: PythonPath = Field(
        "python3", description="Interpreter that has Ray, on hosts over SSH."
    )
    min_driver: VersionText | None = Field(
        None, description="Oldest NVIDIA driver of a host over SSH whose GPUs are used."
    )
    min_cuda: VersionText | None = Field(
        None, description="Oldest CUDA that its driver must serve, such as 12.4."
    )
    ssh: SshAccess = Field(default_factory=SshAccess, description="How hosts are reached.")
    hosts: tuple[Host, ...] = Field((), description="One entry for each machine.")


class Pool(Section):
    """Instances of one kind at one place. Other keys belong to the provider."""

    model_config = ConfigDict(extra="allow")

    infra: Infra = Field(description="PROVIDER, PROVIDER/REGION or PROVIDER/REGION/ZONE.")
    accelerators: Gpus | None = Field(None, description="GPUs of one instance, such as A100:8.")
    cpus: PositiveCount | None = Field(None, description="CPUs of one instance.")
    memory_bytes: Size | None = Field(None, description="Memory of one instance.")
    usd_per_hour: Price | None = Field(None, description="Price of one instance, US dollars.")
    use_spot: Flag = Field(default=False, description="Buy on the spot market.")
    max_nodes: Count | None = Field(None, description="At most so many at a time.")
    labels: NodeLabels = Field(default_factory=dict, description="Ray labels of your own.")

    @model_validator(mode="before")
    @classmethod
    def _give_extras_their_types(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        known = {info.alias for info in cls.model_fields.values()}
        return {key: item if key in known else resolve(item) for key, item in value.items()}

    @property
    def provider(self) -> str:
        """The provider's name: the first word of `infra`."""
        return self.infra.partition("/")[0]

    @property
    def gpu_count(self) -> int:
        """GPUs of one instance."""
        return self.accelerators.count if self.accelerators else 0

    @property
    def instance_type(self) -> str:
        """The provider's name of the kind; `""` when the file gives none."""
        found = self.model_extra.get("instance_type") if self.model_extra else None
        return found if isinstance(found, str) else ""

    @property
    def own_price(self) -> tuple[float, str] | None:
        """The price that stands with the pool, per hour, and its currency."""
        if self.usd_per_hour is not None:
            return self.usd_per_hour, "USD"
        for key, value in (self.model_extra or {}).items():
            match = _PER_HOUR.fullmatch(key)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if match and is_number and math.isfinite(value):
                return float(value), match[1].upper()
        return None


class Clouds(Section):
    """What may be rented: the cheapest of a set, or a list in order."""

    any_of: tuple[Pool, ...] | None = Field(None, description="The cheapest that fits wins.")
    ordered: tuple[Pool, ...] | None = Field(None, description="The first that has stock wins.")

    @property
    def kind(self) -> Literal["any_of", "ordered"]:
        """Which of the two lists is used."""
        return "any_of" if self.ordered is None else "ordered"

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The pools, in the order of the file."""
        return (self.any_of if self.ordered is None else self.ordered) or ()

"""What the configuration says about the local cloud."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hybrid.core.models import Market, Offer
from hybrid.core.nodeplan import MIN_OBJECT_STORE_BYTES, clean_label
from hybrid.core.quantity import GpuRequest, gpu_request
from hybrid.core.worded import seconds, size, spelled

_RAY_START_S = 10.0  # from boot to node; 3 s to 13 s measured on two cores
_OWN_LABELS = frozenset(
    {"site", "provider", "region", "zone", "market", "instance-type", "accelerator"}
)


_Duration: TypeAlias = Annotated[float, seconds()]
_Size: TypeAlias = Annotated[int, size()]
_StoreSize: TypeAlias = Annotated[int, size(low=MIN_OBJECT_STORE_BYTES)]
_Infra: TypeAlias = Annotated[
    str, spelled(r"[^/]+(/[A-Za-z0-9_.-]+){0,2}", "a place of this cloud", "local/north/a")
]
_Type: TypeAlias = Annotated[
    str, spelled(r"[A-Za-z0-9_.-]{0,63}", "a name of a kind of machine", "a100-8")
]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fail(_Section):
    """Rehearsal switches: what goes wrong on purpose.

    Attributes:
        never_joins: Instances boot, but no Ray node ever comes of them.
        sold_out: Offers are listed, but nothing is left to rent.
        interrupt_after: Spot instances are taken back so long after Ray runs on them.
        notice: How long before that they are told; AWS gives two minutes, Google 30 seconds.
    """

    never_joins: bool = False
    sold_out: bool = False
    interrupt_after: _Duration | None = None
    notice: _Duration = 30.0


class Pool(_Section):
    """Instances of one kind.

    Attributes:
        infra: `local`, or `local/REGION` or `local/REGION/ZONE` with pretended places.
        accelerators: `GPU:4` or `A100:4`; logical GPUs in both cases.
        cpus: Logical CPUs; as many as GPUs when absent, at least 1.
        memory: Memory that tasks may ask for, logical too.
        instance_type: Name of the kind, when the one made from the numbers is not unique.
        rank: Place in the configuration's `ordered` list.
        stock: How many this pool can have at a time.
        boot_delay: How long an instance takes to boot, before Ray starts.
        fail: Rehearsal switches; leave them out of anything you rely on.
    """

    infra: _Infra
    accelerators: str | None = None
    cpus: int | None = Field(default=None, ge=1)
    memory: _Size = 2 * 2**30
    usd_per_hour: float = Field(gt=0, allow_inf_nan=False)
    use_spot: bool = False
    max_nodes: int | None = Field(default=None, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    instance_type: _Type = ""
    rank: int = Field(default=0, ge=0)
    stock: int = Field(default=4, ge=0)
    boot_delay: _Duration = 0.0
    fail: Fail = Field(default_factory=Fail)

    @field_validator("accelerators")
    @classmethod
    def _is_a_gpu_request(cls, text: str | None) -> str | None:
        return None if text is None else str(gpu_request(text))

    @field_validator("labels")
    @classmethod
    def _are_not_ours(cls, labels: dict[str, str]) -> dict[str, str]:
        if taken := sorted(_OWN_LABELS & labels.keys()):
            raise ValueError(f"label {taken[0]} is set by this program; choose another name")
        return labels

    @model_validator(mode="after")
    def _only_spot_is_taken_back(self) -> Pool:
        if self.fail.interrupt_after is not None and not self.use_spot:
            raise ValueError(
                "fail.interrupt_after is for spot instances; add `use_spot: true`, or leave it out"
            )
        return self

    @property
    def gpus(self) -> GpuRequest | None:
        """The GPUs of one instance."""
        return None if self.accelerators is None else gpu_request(self.accelerators)

    def offer(self, provider: str) -> Offer:
        """Return what can be rented here, without its stock."""
        _, region, zone = (*self.infra.split("/"), "", "")[:3]
        market = Market.SPOT if self.use_spot else Market.ON_DEMAND
        instance_type = self.instance_type or self._made_type()
        return Offer(
            offer_id="/".join(filter(None, (provider, region, zone, instance_type, market))),
            provider=provider,
            region=region,
            zone=zone,
            instance_type=instance_type,
            market=market,
            shape=self._shape(),
            labels=self.labels,
            accelerator=self.gpus.accelerator if self.gpus else "",
            gpu_count=self.gpus.count if self.gpus else 0,
            usd_per_hour=self.usd_per_hour,
            max_count=self.max_nodes,
            boot_s=self.boot_delay + _RAY_START_S,
            rank=self.rank,
        )

    def _cpu_count(self) -> int:
        return self.cpus or max(1, self.gpus.count if self.gpus else 1)

    def _made_type(self) -> str:
        gpus = (
            f"{clean_label(self.gpus.accelerator) or 'gpu'}x{self.gpus.count}-" if self.gpus else ""
        )
        return f"{gpus}cpux{self._cpu_count()}"[:63]

    def _shape(self) -> dict[str, float]:
        shape: dict[str, float] = {"CPU": self._cpu_count(), "memory": self.memory}
        if self.gpus:
            shape["GPU"] = self.gpus.count
            if self.gpus.accelerator:
                # As Ray does on a machine with such GPUs: tasks ask for a share of it.
                shape[f"accelerator_type:{self.gpus.accelerator}"] = 1
        return shape


class Params(_Section):
    """The provider's whole configuration.

    Attributes:
        object_store: Ray's object store of one instance; Ray refuses less than 75 MiB. If absent,
            `ray.object_store`, or 80 MB where that is absent too.
        ports: First and last port that instances may use.
    """

    pools: tuple[Pool, ...] = ()
    object_store: _StoreSize | None = None
    ports: tuple[int, int] | None = None

    @model_validator(mode="after")
    def _pools_differ(self) -> Params:
        ids = [pool.offer("x").offer_id for pool in self.pools]
        for index, offer_id in enumerate(ids):
            if offer_id in ids[:index]:
                raise ValueError(
                    f"pools {ids.index(offer_id)} and {index} are the same kind at the same "
                    "place; give one of them an instance_type of its own"
                )
        return self

    @field_validator("ports")
    @classmethod
    def _are_a_range(cls, ports: tuple[int, int] | None) -> tuple[int, int] | None:
        if ports is not None and not 1024 <= ports[0] <= ports[1] <= 65_535:
            raise ValueError(
                f"{ports[0]} to {ports[1]} are no ports to use; write the first and the last, "
                "between 1024 and 65535, for example [20000, 29999]"
            )
        return ports

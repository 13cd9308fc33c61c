"""What the configuration says about AWS: the account, its regions, and what may be rented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hybrid.core.models import Market
from hybrid.core.nodeplan import Preflight
from hybrid.core.prices import DAY_S
from hybrid.core.quantity import GpuRequest, gpu_request, shown
from hybrid.core.worded import seconds, size, spelled
from providers.aws.machines import Knowledge

SSM = "ssm:"
"""What an image begins with that is the name of an SSM parameter."""

_REGION = r"[a-z]{2}(?:-[a-z]+){1,3}-\d"
_ZONE_END = r"[a-z0-9-]+"
_INFRA = re.compile(rf"[^/]+/(?P<region>{_REGION})(?:/(?P<zone>(?P=region){_ZONE_END}))?")
_OWN_LABELS = frozenset(
    {"site", "provider", "region", "zone", "market", "instance-type", "accelerator"}
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_TAG_KEY = re.compile(r"(?!aws:)(?!hybrid-)[A-Za-z0-9+=.,_:@-]{1,128}")


_Duration: TypeAlias = Annotated[float, seconds()]
_Pace: TypeAlias = Annotated[float, seconds(low=300.0)]
_Size: TypeAlias = Annotated[int, size()]
_DiskSize: TypeAlias = Annotated[int, size(low=2**30)]
_Usd: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Image: TypeAlias = Annotated[
    str,
    spelled(
        rf"ami-[0-9a-f]{{8,17}}|{SSM}/[A-Za-z0-9_.:/-]+",
        "an image of AWS",
        "ami-0123456789abcdef0, or ssm:/NAME/OF/PARAMETER",
    ),
]
_Subnet: TypeAlias = Annotated[
    str, spelled(r"subnet-[0-9a-f]{8,17}", "the id of a subnet", "subnet-0123456789abcdef0")
]
_Group: TypeAlias = Annotated[
    str, spelled(r"sg-[0-9a-f]{8,17}", "the id of a security group", "sg-0123456789abcdef0")
]
_Profile: TypeAlias = Annotated[
    str,
    spelled(
        r"[\w+=,.@-]{1,128}",
        "the name of an instance profile",
        "hybrid-node (its name, not its ARN)",
    ),
]
_KmsKey: TypeAlias = Annotated[
    str,
    spelled(r"[A-Za-z0-9:/_-]{1,2048}", "a key of KMS", "alias/my-key, or the ARN of one"),
]
_Type: TypeAlias = Annotated[
    str, spelled(r"[a-z0-9-]+\.[a-z0-9-]+", "an instance type of AWS", "p5.48xlarge")
]
_Python: TypeAlias = Annotated[
    str, spelled(r"/[A-Za-z0-9_./+-]+", "the path of an interpreter", "/opt/hybrid/bin/python")
]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Region(_Section):
    """What instances in a region are made of.

    Attributes:
        image: AMI id, or `ssm:/name/of/parameter` that holds one. It has Ray and this program.
        subnets: Subnet of each zone; without one a zone's default subnet is used.
        security_groups: Who may talk to the instances; the network's default when empty.
        instance_profile: Name of the profile whose role the instances get; none when absent.
        key_name: SSH key pair; none when absent.
        disk: Size of the root volume, which is encrypted and ends with the instance.
        kms_key: Key of the volumes; the account's default when absent.
    """

    image: _Image | None = None
    subnets: dict[str, _Subnet] = Field(default_factory=dict)
    security_groups: tuple[_Group, ...] = ()
    instance_profile: _Profile | None = None
    key_name: str | None = Field(default=None, min_length=1, max_length=255)
    disk: _DiskSize = 100 * 2**30
    kms_key: _KmsKey | None = None


class Pool(_Section):
    """Instances of one type in one zone, or in any zone of a region.

    Attributes:
        infra: `aws/REGION/ZONE` for one zone, `aws/REGION` for all zones with a subnet.
        instance_type: Such as `p4d.24xlarge`.
        accelerators: GPUs of one instance. They, `cpus` and `memory` come from the catalog, and
            from AWS for types that the catalog does not know.
        memory: What tasks may ask for; 60 % of the machine's when absent.
        usd_per_hour: Price of one instance; without it that of AWS's price list or of the
            catalog, and the market's for spot.
        spot_limit_usd_per_hour: Spot only: EC2 takes the instance back when it costs more.
        rank: Place in the configuration's `ordered` list.
        image: Instead of the region's.
        disk: Instead of the region's.
        boot_time: Expected time from launch to node.
    """

    infra: str
    instance_type: _Type
    accelerators: str | None = None
    cpus: int | None = Field(default=None, ge=1)
    memory: _Size | None = None
    usd_per_hour: _Usd | None = None
    spot_limit_usd_per_hour: _Usd | None = None
    use_spot: bool = False
    max_nodes: int | None = Field(default=None, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    rank: int = Field(default=0, ge=0)
    image: _Image | None = None
    disk: _DiskSize | None = None
    boot_time: _Duration = 240.0

    @model_validator(mode="before")
    @classmethod
    def _is_completed(cls, raw: object, info: ValidationInfo) -> object:
        knowledge = info.context if isinstance(info.context, Knowledge) else Knowledge()
        return knowledge.filled(raw) if isinstance(raw, Mapping) else raw

    @field_validator("infra")
    @classmethod
    def _is_a_place(cls, infra: str) -> str:
        if not _INFRA.fullmatch(infra):
            raise ValueError(
                f"{shown(infra)} is not a place of AWS; write PROVIDER/REGION or "
                "PROVIDER/REGION/ZONE, for example aws/us-east-1 or aws/us-east-1/us-east-1a"
            )
        return infra

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
    def _has_a_fair_price(self) -> Pool:
        if self.spot_limit_usd_per_hour is not None and not self.use_spot:
            raise ValueError(
                "spot_limit_usd_per_hour is for spot pools; this one has a fixed price"
            )
        if self.region.startswith("cn-") and (
            self.spot_limit_usd_per_hour or (self.use_spot and not self.usd_per_hour)
        ):
            raise ValueError(
                "AWS counts in CNY in its regions in China; give a spot pool there usd_per_hour, "
                "and no spot_limit_usd_per_hour"
            )
        return self

    @property
    def region(self) -> str:
        """The region."""
        return self.infra.split("/")[1]

    @property
    def zone(self) -> str:
        """The zone; `""` for all zones of the region."""
        return (*self.infra.split("/"), "")[2]

    @property
    def market(self) -> Market:
        """How it is bought."""
        return Market.SPOT if self.use_spot else Market.ON_DEMAND

    @property
    def gpus(self) -> GpuRequest | None:
        """The GPUs of one instance, if the configuration says."""
        return None if self.accelerators is None else gpu_request(self.accelerators)

    def offer_id(self, provider: str) -> str:
        """Return the id of what can be rented here."""
        parts = (provider, self.region, self.zone, self.instance_type, self.market.value)
        return "/".join(filter(None, parts))


class Params(Preflight, _Section):
    """The provider's whole configuration; beside this, what `Preflight` says.

    Attributes:
        profile: Profile of the AWS configuration; the SDK's own search when absent.
        endpoint_url: Another server for all calls, such as an emulator's.
        regions: What instances are made of, by region.
        tags: More tags for what is rented, such as a cost centre.
        python: Interpreter of the image that has Ray and this program.
        price_refresh: How often AWS's price list is read for on-demand pools without
            `usd_per_hour`: one free call for each type and region. `off`: never.
    """

    profile: str | None = Field(default=None, min_length=1)
    endpoint_url: str | None = None
    regions: dict[str, Region] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)
    python: _Python = "/opt/hybrid/bin/python"
    price_refresh: _Pace | None = DAY_S
    pools: tuple[Pool, ...] = ()

    @field_validator("price_refresh", mode="before")
    @classmethod
    def _may_be_off(cls, value: object) -> object:
        return None if value == "off" or value is False else value

    @field_validator("endpoint_url")
    @classmethod
    def _is_safe(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise ValueError(f"{shown(url)} would send requests in the clear; write https://...")
        return url

    @field_validator("regions")
    @classmethod
    def _are_regions(cls, regions: Mapping[str, Region]) -> Mapping[str, Region]:
        for name, region in regions.items():
            if not re.fullmatch(_REGION, name):
                raise ValueError(f"{shown(name)} is not a region; write for example us-east-1")
            for zone in region.subnets:
                if zone == name or not re.fullmatch(rf"{name}{_ZONE_END}", zone):
                    raise ValueError(
                        f"{shown(zone)} is not a zone of {name}; write zone: subnet, as in "
                        f"{name}a: subnet-0123abcd"
                    )
        return regions

    @field_validator("tags")
    @classmethod
    def _are_allowed(cls, tags: dict[str, str]) -> dict[str, str]:
        for key, value in tags.items():
            # These characters only, because the tags are readable on the instance.
            if not _TAG_KEY.fullmatch(key) or len(value) > 256:
                raise ValueError(
                    f"{shown(key)}: {shown(value)} is not a tag; write up to 128 letters, digits "
                    "or +-=.,_:@, not beginning with aws: or hybrid-, and a value of up to 256 "
                    "characters"
                )
        return tags

    @model_validator(mode="after")
    def _pools_can_be_made(self) -> Params:
        ids = [pool.offer_id("x") for pool in self.pools]
        for index, pool in enumerate(self.pools):
            if ids[index] in ids[:index]:
                raise ValueError(
                    f"pools {ids.index(ids[index])} and {index} are the same type at the same "
                    "place; leave one of them out"
                )
            region = self.region(pool)
            if pool.image is None and region.image is None:
                raise ValueError(
                    f"pool {index} has no image; give it one, or all of {pool.region} under "
                    f"providers.aws.regions.{pool.region}.image"
                )
            if not pool.zone and not region.subnets:
                raise ValueError(
                    f"pool {index} is for all zones of {pool.region}; say which, with their "
                    f"subnets, under providers.aws.regions.{pool.region}.subnets, or name one zone "
                    "in its infra"
                )
        return self

    def region(self, pool: Pool) -> Region:
        """Return what instances of a pool are made of."""
        return self.regions.get(pool.region) or Region()

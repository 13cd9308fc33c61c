"""What the configuration says about Baidu AI Cloud: the account, and the pools."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hybrid.core import gpu_names
from hybrid.core.models import Market
from hybrid.core.nodeplan import Preflight
from hybrid.core.quantity import GpuRequest, gpu_request, shown
from hybrid.core.worded import seconds, size, spelled
from providers.baidu.spec import SPEC, Inside, inside

REGIONS = ("bd", "bj", "fsh", "fwh", "gz", "hkg", "sin", "su")
"""Regions with BCC, from the vendor's page on service domains."""

ErrorKind: TypeAlias = Literal[
    "auth", "capacity", "conflict", "invalid", "not_found", "quota", "throttled", "transient"
]

_OWN_LABELS = frozenset(
    {"site", "provider", "region", "zone", "market", "instance-type", "accelerator"}
)
_INFRA = re.compile(r"[^/]+/([a-z0-9]{2,12})(?:/([A-Za-z0-9][A-Za-z0-9-]{0,62}))?")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ID = r"[A-Za-z0-9_-]{1,128}"

_Size: TypeAlias = Annotated[int, size(low=1)]
_Image: TypeAlias = Annotated[str, spelled(_ID, "the id of an image", "m-AbCd1234")]
_Subnet: TypeAlias = Annotated[str, spelled(_ID, "the id of a subnet", "sbn-abcdefghijkl")]
_Group: TypeAlias = Annotated[str, spelled(_ID, "the id of a security group", "g-abcdefghijkl")]
_KeyPair: TypeAlias = Annotated[str, spelled(_ID, "the id of a key pair", "k-AbCd1234")]
_ResourceGroup: TypeAlias = Annotated[
    str, spelled(_ID, "the id of a resource group", "RESG-AbCd1234")
]
_Python: TypeAlias = Annotated[
    str, spelled(r"/[A-Za-z0-9._/-]+", "the path of an interpreter", "/opt/hybrid/bin/python")
]
_Price: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Exchange(_Section):
    """What a US dollar costs. Baidu bills in CNY; caps and comparisons are in dollars.

    There is no default: a rate without its date and its source is a guess.

    Attributes:
        cny_per_usd: CNY for one dollar.
        as_of: The day it is from.
        source: Where it is from, such as `PBOC central parity`.
    """

    cny_per_usd: float = Field(gt=1, lt=100, allow_inf_nan=False)
    as_of: dt.date
    source: str = Field(min_length=1, max_length=200)


class Pool(_Section):
    """Instances of one type at one place.

    Attributes:
        infra: `baidu/REGION` or `baidu/REGION/ZONE`, such as `baidu/bj/cn-bj-d`.
        instance_type: Baidu's name of it, such as `bcc.hgn5IB.c116m978.8A100-80g`.
        accelerators: GPUs, such as `A100:8`; read from the name when absent.
        cpus, memory: What Ray may use of it; read from the name when absent (of the memory a
            part is left to the system and to Ray's object store).
        usd_per_hour, cny_per_hour: Its price, in one of the two currencies; the catalog's when
            absent, which has none of Baidu as it is shipped. A spot instance is bid for at this
            price, so that it never costs more than the caps count.
        image, subnet: Instead of the account's.
        rank: Place in the configuration's `ordered` list.
    """

    infra: str
    instance_type: str = Field(max_length=63)
    accelerators: str | None = None
    cpus: int | None = Field(default=None, ge=1)
    memory: _Size | None = None
    usd_per_hour: _Price | None = None
    cny_per_hour: _Price | None = None
    use_spot: bool = False
    max_nodes: int | None = Field(default=None, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    image: _Image | None = None
    subnet: _Subnet | None = None
    rank: int = Field(default=0, ge=0)

    @field_validator("infra")
    @classmethod
    def _names_a_region(cls, infra: str) -> str:
        if not _INFRA.fullmatch(infra):
            raise ValueError(
                f"{shown(infra)} names no region; write baidu/REGION or baidu/REGION/ZONE, for "
                "example baidu/bj/cn-bj-d"
            )
        return infra

    @field_validator("instance_type")
    @classmethod
    def _is_a_spec(cls, name: str) -> str:
        if not SPEC.fullmatch(name):
            raise ValueError(
                f"{shown(name)} is not an instance type of Baidu; write its `spec`, for example "
                "bcc.hgn5IB.c116m978.8A100-80g"
            )
        return name

    @field_validator("labels")
    @classmethod
    def _are_not_ours(cls, labels: dict[str, str]) -> dict[str, str]:
        if taken := sorted(_OWN_LABELS & labels.keys()):
            raise ValueError(f"label {taken[0]} is set by this program; choose another name")
        return labels

    @field_validator("accelerators")
    @classmethod
    def _is_a_gpu_request(cls, text: str | None) -> str | None:
        return None if text is None else str(gpu_request(text))

    @model_validator(mode="after")
    def _has_one_price(self) -> Pool:
        if self.usd_per_hour is not None and self.cny_per_hour is not None:
            raise ValueError("the price is given twice; write either usd_per_hour or cny_per_hour")
        return self

    @model_validator(mode="after")
    def _agrees_with_its_type(self) -> Pool:
        named = self.inside
        if self.accelerators and named.cpu_count and not _is_inside(self.accelerators, named):
            has = f"{named.accelerator}:{named.gpu_count}" if named.gpu_count else "no GPU"
            raise ValueError(
                f"accelerators is {self.accelerators}, but {self.instance_type} has {has}; leave "
                "it out, or correct one of them"
            )
        for key, asked, most in (
            ("cpus", self.cpus, named.cpu_count),
            ("memory", self.memory, named.memory_gib * 2**30),
        ):
            if asked is None and not most:
                raise ValueError(
                    f"{self.instance_type} does not say what is inside; add {key} to this pool"
                )
            if asked is not None and most and asked > most:
                raise ValueError(
                    f"{key} is more than {self.instance_type} has; write at most {most}"
                )
        return self

    @property
    def region(self) -> str:
        """Where it is."""
        return self.infra.split("/")[1]

    @property
    def zone(self) -> str:
        """Where in the region it is; `""` when Baidu may choose."""
        return (*self.infra.split("/"), "")[2]

    @property
    def market(self) -> Market:
        """How it is bought."""
        return Market.SPOT if self.use_spot else Market.ON_DEMAND

    def offer_id(self, provider: str) -> str:
        """Return the id of what can be rented here."""
        place = (provider, self.region, self.zone, self.instance_type, self.market.value)
        return "/".join(filter(None, place))

    @property
    def inside(self) -> Inside:
        """What the name of its type says is inside."""
        return inside(self.instance_type)

    @property
    def gpus(self) -> GpuRequest | None:
        """The GPUs of one instance, in Ray's words."""
        if self.accelerators is not None:
            asked = gpu_request(self.accelerators)
            return GpuRequest(gpu_names.ray_type(asked.accelerator), asked.count)
        named = self.inside
        if not named.gpu_count:
            return None
        return GpuRequest(gpu_names.ray_type(named.accelerator), named.gpu_count)


class Params(Preflight, _Section):
    """The provider's whole configuration; beside this, what `Preflight` says.

    Credentials come from elsewhere: `credentials.py`.

    Attributes:
        exchange: Needed for prices in CNY and for spot instances, which are bid for in CNY.
        credentials_file: JSON with the keys, instead of environment variables.
        image: Image with this program and Ray on it.
        subnets: Subnet by zone (or by region). It decides the VPC.
        security_groups: Of all instances. Baidu wants them whenever a subnet is given.
        key_pair: For people who want to log in; not needed.
        root_disk_gb: Size of the system disk. Data disks are not made: Baidu's automatic
            release would leave them behind, and they would go on to cost money.
        resource_group: Resource group of all instances.
        python: Interpreter on the image that has this program and Ray.
        endpoints: API by region, instead of `https://bcc.REGION.baidubce.com`.
        timeout: How long one call may take to connect, and then between two bytes.
        errors: Kind by part of an error code or message: Baidu does not publish all codes.
    """

    pools: tuple[Pool, ...] = ()
    exchange: Exchange | None = None
    credentials_file: Path | None = None
    image: _Image | None = None
    subnets: dict[str, _Subnet] = Field(default_factory=dict)
    security_groups: tuple[_Group, ...] = ()
    key_pair: _KeyPair | None = None
    root_disk_gb: int = Field(default=100, ge=40, le=2048)
    resource_group: _ResourceGroup | None = None
    python: _Python = "/opt/hybrid/bin/python"
    endpoints: dict[str, str] = Field(default_factory=dict)
    timeout: Annotated[float, seconds(low=0.1)] = 30.0
    errors: dict[str, ErrorKind] = Field(default_factory=dict)

    @field_validator("endpoints")
    @classmethod
    def _are_encrypted(cls, endpoints: dict[str, str]) -> dict[str, str]:
        for region, url in endpoints.items():
            parts = urlsplit(url)
            is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
            is_plain = not (parts.path.strip("/") or parts.query or parts.username)
            if not parts.hostname or not is_plain or not (parts.scheme == "https" or is_local):
                raise ValueError(
                    f"{region}: {shown(url)} is not an endpoint; write https://HOST, since "
                    "Baidu's signature does not protect what is sent"
                )
        return endpoints

    @field_validator("errors")
    @classmethod
    def _have_a_pattern(cls, errors: dict[str, ErrorKind]) -> dict[str, ErrorKind]:
        for part in errors:
            if len(part.strip()) < 3:
                raise ValueError(
                    f"{shown(part)} would fit any error; write at least 3 characters of the code"
                )
        return errors

    @model_validator(mode="after")
    def _is_complete(self) -> Params:
        seen = set()
        for pool in self.pools:
            name = f"pool {pool.infra} {pool.instance_type}"
            if problem := self._problem_of(pool):
                raise ValueError(f"{name}: {problem}")
            if (name, pool.use_spot) in seen:
                raise ValueError(f"{name} is listed twice; remove one of the two")
            seen.add((name, pool.use_spot))
        return self

    def endpoint(self, region: str) -> str:
        """Return the address of a region's API."""
        return self.endpoints.get(region, f"https://bcc.{region}.baidubce.com").rstrip("/")

    def image_of(self, pool: Pool) -> str:
        """Return the image of a pool's instances."""
        return pool.image or self.image or ""

    def subnet_of(self, pool: Pool) -> str:
        """Return the subnet of a pool's instances, `""` for the account's default."""
        return pool.subnet or self.subnets.get(pool.zone) or self.subnets.get(pool.region) or ""

    def _problem_of(self, pool: Pool) -> str:
        if pool.region not in (*REGIONS, *self.endpoints):
            known = ", ".join(sorted({*REGIONS, *self.endpoints}))
            return (
                f"there is no region {shown(pool.region)}; known are {known}. Write the address "
                "of another one's API under providers.baidu.endpoints"
            )
        if not self.image_of(pool):
            return "it has no image; write providers.baidu.image, for example m-AbCd1234"
        if self.exchange is None and (pool.use_spot or pool.cny_per_hour is not None):
            why = "a spot instance is bid for" if pool.use_spot else "its price is"
            return (
                f"{why} in CNY; write providers.baidu.exchange with cny_per_usd, as_of (the date "
                "of the rate) and source"
            )
        if bool(self.subnet_of(pool)) != bool(self.security_groups):
            return (
                "subnet and security groups go together; write both "
                "(providers.baidu.subnets and security_groups), or neither for the default VPC"
            )
        return ""


def _is_inside(accelerators: str, named: Inside) -> bool:
    asked = gpu_request(accelerators)
    is_type = not asked.accelerator or gpu_names.is_same(asked.accelerator, named.accelerator, None)
    return asked.count == named.gpu_count and is_type

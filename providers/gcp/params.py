"""What the configuration says about Google Cloud: the project, and what may be rented in it."""

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
from hybrid.core.quantity import GpuRequest, gpu_request, shown
from hybrid.core.worded import seconds, size, spelled
from providers.gcp.machines import Knowledge
from providers.gcp.naming import ZONE

DAY_S = 86_400.0
_GIB = 2**30
_OWN_LABELS = frozenset(
    {"site", "provider", "region", "zone", "market", "instance-type", "accelerator"}
)
_INFRA = re.compile(rf"[^/]+/([a-z0-9-]+)/({ZONE})")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NAME = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"

_Duration: TypeAlias = Annotated[float, seconds()]
_Size: TypeAlias = Annotated[int, size()]
_DiskSize: TypeAlias = Annotated[int, size(low=10 * _GIB, high=64 * 1024 * _GIB)]
# At least 30 s and at most 120 days: Google's limits of `maxRunDuration`.
_Life: TypeAlias = Annotated[float, seconds(low=600.0, high=120 * DAY_S)]
_Tag: TypeAlias = Annotated[str, spelled(_NAME, "a network tag", "hybrid-node")]
_DiskType: TypeAlias = Annotated[str, spelled(_NAME, "a type of disk", "pd-balanced")]
_AttachedGpu: TypeAlias = Annotated[
    str, spelled(_NAME, "Google's name of a GPU to attach", "nvidia-tesla-t4")
]
_Image: TypeAlias = Annotated[
    str,
    spelled(
        r"projects/[a-z0-9.:-]+/global/images/(family/)?[a-z0-9-]+",
        "an image of Google Cloud",
        "projects/my-project/global/images/family/hybrid-node",
    ),
]
_Subnetwork: TypeAlias = Annotated[
    str,
    spelled(
        rf"(projects/[a-z0-9.:-]+/regions/[a-z0-9-]+/subnetworks/)?{_NAME}",
        "a subnetwork",
        "default, or projects/my-project/regions/us-central1/subnetworks/nodes",
    ),
]
_ServiceAccount: TypeAlias = Annotated[
    str,
    spelled(r"[^@\s]+@[^@\s]+", "a service account", "node@my-project.iam.gserviceaccount.com"),
]
_Python: TypeAlias = Annotated[
    str, spelled(r"/[A-Za-z0-9._/+-]+", "the path of an interpreter", "/opt/hybrid/bin/python")
]
_Type: TypeAlias = Annotated[
    str, spelled(r"[a-z][a-z0-9-]{0,61}[a-z0-9]", "a machine type", "g2-standard-8")
]
_Project: TypeAlias = Annotated[
    str, spelled(r"([a-z0-9.:-]{1,100})?", "the id of a project", "my-project")
]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Machine(Preflight, _Section):
    """What may stand with the account for all pools, or with one pool for itself.

    Beside this, what `Preflight` says.

    Attributes:
        image: Of the boot disk: `projects/P/global/images/NAME` or `.../family/NAME`. It must
            hold the GPU driver, Python, this program and the same Ray as the head.
        subnetwork: Name of the subnetwork in the zone's region, or, when it is another
            project's, `projects/P/regions/R/subnetworks/NAME`.
        network_tags: Network tags that firewall rules name.
        external_ip: Whether it gets a public address. Without one it needs Cloud NAT for
            anything outside your networks.
        service_account: Whose rights programs on the node have; none when absent.
        delete_itself: Whether a machine whose lease is over deletes itself, disk and all, with the
            rights of its `service_account`, before it turns itself off. Without such an account
            it is only off, and its disk costs money until somebody deletes it.
        disk: Boot disk.
        disk_type: `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`, ...
        python: Interpreter in the image that has this program and Ray.
        max_life: Google itself deletes an instance that ran this long, whoever is alive. It
            cannot be changed later. Up to 7 days such machines may use either of the two GPU
            quotas, preemptible or standard.
    """

    image: _Image | None = None
    subnetwork: _Subnetwork = "default"
    network_tags: tuple[_Tag, ...] = ()
    external_ip: bool = False
    service_account: _ServiceAccount | None = None
    delete_itself: bool = True
    disk: _DiskSize = 100 * _GIB
    disk_type: _DiskType = "pd-balanced"
    python: _Python = "/opt/hybrid/bin/python"
    max_life: _Life = 7 * DAY_S


class Pool(Machine):
    """Instances of one kind in one zone. What `Machine` has and a pool lacks is the account's.

    Attributes:
        infra: `gcp/REGION/ZONE`, such as `gcp/us-central1/us-central1-a`.
        instance_type: Machine type, such as `g2-standard-8`.
        accelerators: Its GPUs, such as `L4:1`, as tasks ask for them. They, `cpus` and `memory`
            come from the catalog when it knows the type.
        usd_per_hour: Price of one instance; the catalog's when absent.
        attached_gpu: Google's name of a GPU to attach, such as `nvidia-tesla-t4`, for machine
            types that come without (N1).
        cpus, memory: What Ray will count on it; of the catalog's memory 60 %.
        boot_time: From the create call to a node in Ray, until it is learned.
        rank: Place in the configuration's `ordered` list.
    """

    infra: str
    instance_type: _Type
    accelerators: str | None = None
    attached_gpu: _AttachedGpu | None = None
    cpus: int = Field(ge=1)
    memory: _Size
    usd_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    use_spot: bool = False
    max_nodes: int | None = Field(default=None, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    rank: int = Field(default=0, ge=0)
    boot_time: _Duration = 240.0

    @model_validator(mode="before")
    @classmethod
    def _is_completed(cls, raw: object, info: ValidationInfo) -> object:
        knowledge = info.context if isinstance(info.context, Knowledge) else Knowledge()
        return knowledge.filled(raw) if isinstance(raw, Mapping) else raw

    @field_validator("infra")
    @classmethod
    def _names_a_zone(cls, text: str) -> str:
        match = _INFRA.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{shown(text)} names no zone; write gcp/REGION/ZONE, for example "
                "gcp/us-central1/us-central1-a"
            )
        if not match[2].startswith(f"{match[1]}-"):
            raise ValueError(f"zone {match[2]} is not in region {match[1]}; correct one of them")
        return text

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
    def _attaches_what_it_counts(self) -> Pool:
        if self.attached_gpu and self.accelerators is None:
            raise ValueError(
                f"attached_gpu is {self.attached_gpu}, but accelerators does not say how many; "
                "write for example accelerators: T4:1"
            )
        return self

    @property
    def region(self) -> str:
        """The region, such as `us-central1`."""
        return self.infra.split("/")[1]

    @property
    def zone(self) -> str:
        """The zone, such as `us-central1-a`."""
        return self.infra.split("/")[2]

    @property
    def market(self) -> Market:
        """How it is bought."""
        return Market.SPOT if self.use_spot else Market.ON_DEMAND

    @property
    def gpus(self) -> GpuRequest | None:
        """The GPUs of one instance."""
        return None if self.accelerators is None else gpu_request(self.accelerators)

    def offer_id(self, provider: str) -> str:
        """Return the id of what can be rented here."""
        return "/".join((provider, self.region, self.zone, self.instance_type, self.market.value))


class Params(Machine):
    """The provider's whole configuration; beside this, what `Machine` says.

    Validate it with a `Knowledge` as context, or every pool must say all by itself.

    Attributes:
        project: Id of the project that pays.
        tags: Google's labels of your own on every instance and disk, for billing reports.
        endpoint_url: Another address of the API: an emulator's, or a private one.
        launch_wait: How long a launch waits for Google to say whether there is a machine. Some
            refusals come that fast, machines do not: what takes longer is looked for in the next
            tick, and a tick waits for its slowest launch.
        call_timeout: How long one call may take.
        list_lag: Longest time a new instance may be missing from Google's list.
    """

    pools: tuple[Pool, ...] = ()
    project: _Project = ""
    tags: dict[str, str] = Field(default_factory=dict)
    endpoint_url: str = ""
    launch_wait: Annotated[float, seconds(high=110.0)] = 3.0
    call_timeout: Annotated[float, seconds(low=0.1, high=300.0)] = 30.0
    list_lag: Annotated[float, seconds(high=3600.0)] = 60.0

    @model_validator(mode="before")
    @classmethod
    def _pools_take_after_the_account(cls, raw: object) -> object:
        """Give each pool the account's image, network and so on, where it has none."""
        if not isinstance(raw, Mapping) or not isinstance(raw.get("pools"), list | tuple):
            return raw
        shared = {key: raw[key] for key in Machine.model_fields if raw.get(key) is not None}
        pools = [{**shared, **pool} if isinstance(pool, Mapping) else pool for pool in raw["pools"]]
        return {**raw, "pools": pools}

    @field_validator("tags")
    @classmethod
    def _are_labels_of_google(cls, tags: dict[str, str]) -> dict[str, str]:
        for key, value in tags.items():
            if not _LABEL.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
                raise ValueError(
                    f"{shown(key)}: {shown(value)} is not a label of Google Cloud; write up to 63 "
                    "small letters, digits, '_' or '-', the key beginning with a letter"
                )
            if key.startswith("hybrid-"):
                raise ValueError(f"tag {key} is kept for this program; choose another name")
        return tags

    @field_validator("endpoint_url")
    @classmethod
    def _keeps_tokens_safe(cls, url: str) -> str:
        parts = urlsplit(url)
        is_loopback = parts.scheme == "http" and parts.hostname in _LOOPBACK
        is_plain = parts.path in ("", "/") and not parts.query and not parts.username
        if url and (
            not parts.hostname or not is_plain or not (parts.scheme == "https" or is_loopback)
        ):
            raise ValueError(
                f"{shown(url)} cannot be an endpoint; write https://HOST, or http://127.0.0.1:PORT "
                "for an emulator"
            )
        return url.rstrip("/")

    @model_validator(mode="after")
    def _is_complete(self) -> Params:
        if self.pools and not self.project:
            raise ValueError("project is missing; write the id of your Google Cloud project")
        for place, pool in enumerate(self.pools):
            if pool.image is None:
                raise ValueError(
                    f"pool {place} ({pool.infra}) has no image; write image under providers or "
                    "with the pool, such as projects/my-project/global/images/family/hybrid-node"
                )
        return self

    @model_validator(mode="after")
    def _pools_differ(self) -> Params:
        kinds = [(pool.zone, pool.instance_type, pool.use_spot) for pool in self.pools]
        for place, kind in enumerate(kinds):
            if kind in kinds[:place]:
                raise ValueError(
                    f"pools {kinds.index(kind)} and {place} are the same machine type in the same "
                    "zone and market; remove one, or change it"
                )
        return self

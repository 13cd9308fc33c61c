"""A Ray node or head to be started: every value checked before it becomes part of a command."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from hybrid.core.models import Labels, Model, RayHealth, RayOptions, Shape
from hybrid.core.models.ray_options import MIN_OBJECT_STORE_BYTES, FixedPort
from hybrid.core.worded import spelled

__all__ = [
    "AUTO",
    "HEAD_LABELS",
    "MAX_TEMP_DIR_BYTES",
    "MIN_OBJECT_STORE_BYTES",
    "OFF",
    "HeadPlan",
    "NodePlan",
    "Preflight",
    "RayHealth",
    "StartPlan",
    "clean_label",
]

# Kubernetes' rules for labels, which Ray 2.60 applies (ray/_private/label_utils.py).
_LABEL_NAME = r"[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?"
_LABEL_VALUE = re.compile(rf"({_LABEL_NAME})?")
_LABEL_KEY = re.compile(rf"({_LABEL_NAME}(\.{_LABEL_NAME})*/)?{_LABEL_NAME}")
_RAYS_OWN_KEYS = "ray.io/"
_RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,127}")
_RAYS_OWN_RESOURCES = ("node:", "object_store_memory")
_ADDRESS = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:]{2,39}\]):([0-9]{1,5})")

MAX_TEMP_DIR_BYTES = 41
"""A Unix socket's path has at most 107 bytes; Ray 2.60 appends up to 66 to its folder."""

AUTO: Literal["auto"] = "auto"
OFF: Literal["off"] = "off"

HEAD_LABELS: Labels = {"site": "onprem", "role": "head", "provider": "onprem"}


def clean_label(text: str) -> str:
    """Return `text` as a label value that Ray accepts: other characters become `-`.

    `""` when nothing of it can be kept.
    """
    return re.sub(r"[^a-zA-Z0-9_.-]+", "-", text)[:63].strip("-_.")


def _labels(labels: Labels) -> Labels:
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or key.startswith(_RAYS_OWN_KEYS):
            raise ValueError(
                f"{key!r} is not a label name for Ray; write up to 63 letters, digits, '-', '_' "
                f"or '.', beginning and ending with a letter or digit, and not {_RAYS_OWN_KEYS}..."
            )
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(
                f"label {key}: {value!r} is not a value for Ray; write up to 63 letters, digits, "
                "'-', '_' or '.', beginning and ending with a letter or digit"
            )
    return labels


def _resources(resources: Shape) -> Shape:
    for name, amount in resources.items():
        if not _RESOURCE.fullmatch(name) or name.startswith(_RAYS_OWN_RESOURCES):
            raise ValueError(f"{name!r} is not a resource that a node can be given")
        if not 0 <= amount < float("inf"):
            raise ValueError(f"resource {name}: {amount} is not an amount")
        if name in ("CPU", "GPU", "memory") and amount != int(amount):
            raise ValueError(f"resource {name}: Ray takes whole numbers here, not {amount}")
    return resources


def _address(address: str) -> str:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 1 <= int(match[2]) <= 65_535:
        raise ValueError(f"{address!r} is not an address; write HOST:PORT")
    return address


def _word(text: str) -> str:
    if not text or text.startswith("-") or not text.isprintable():
        raise ValueError(f"{text!r} cannot be a path or a name here")
    return text


def _temp_dir(path: str) -> str:
    if not path.startswith("/") or len(_word(path).encode()) > MAX_TEMP_DIR_BYTES:
        raise ValueError(
            f"{path!r} cannot be Ray's folder: it must be absolute and have at most "
            f"{MAX_TEMP_DIR_BYTES} bytes, because socket paths are short"
        )
    return path


_Labels: TypeAlias = Annotated[Labels, AfterValidator(_labels)]
_Resources: TypeAlias = Annotated[Shape, AfterValidator(_resources)]
_Address: TypeAlias = Annotated[str, AfterValidator(_address)]
_Word: TypeAlias = Annotated[str, AfterValidator(_word)]
_TempDir: TypeAlias = Annotated[str, AfterValidator(_temp_dir)]
_Driver: TypeAlias = Annotated[
    str,
    spelled(r"([0-9]{1,6}(\.[0-9]{1,6}){0,3})?", "a version of the driver", '"535.104", in quotes'),
]
_Cuda: TypeAlias = Annotated[
    str,
    spelled(r"([0-9]{1,3}(\.[0-9]{1,3}){0,2})?", "a version of CUDA", '"12.4", in quotes'),
]
_Port: TypeAlias = FixedPort | Literal["auto"]


class StartPlan(RayOptions):
    """What heads and nodes have in common, beside the cluster's `RayOptions`.

    Attributes:
        python: Interpreter that has Ray, the same version as the head's.
        temp_dir: Ray's own folder on the node.
        resources: What it brings; `CPU`, `GPU` and `memory` (bytes) have options of their own.
            Without `CPU` or `memory` Ray counts what the machine has; without `GPU` it has none.
        node_ip: Address that other nodes dial; `""` lets Ray choose.
    """

    python: _Word
    temp_dir: _TempDir
    resources: _Resources
    labels: _Labels = Field(default_factory=dict)
    node_ip: str = Field(default="", pattern=r"^[0-9A-Fa-f.:]{0,39}$")


class NodePlan(StartPlan):
    """A Ray node to be started.

    Attributes:
        head_address: `host:port` of the head's GCS.
        instance_id: Our id of the rented instance, which Ray hands back with the node.
        are_gpus_logical: GPUs are numbers only: no device decides how many there are.
    """

    head_address: _Address
    instance_id: str = Field(default="", pattern=r"^[A-Za-z0-9._:-]{0,128}$")
    are_gpus_logical: bool = False


class Preflight(Model):
    """What a rented node looks at before it joins, as far as the configuration decides it.

    Attributes:
        install_ray: Where the image has another Ray than the cluster, or none, install the
            cluster's with pip when the machine boots. It takes minutes, and a package index that
            the machine reaches; without it such a machine is given up, with the reason.
        min_driver: Oldest NVIDIA driver that the image may have, such as `"535.104"`, in quotes;
            any when absent.
        min_cuda: Oldest CUDA that the image's driver must serve, such as `"12.4"`, in quotes: what
            the cluster's work needs. Whatever it says, an image that brings a CUDA of a newer
            major version than its driver serves is refused.
        logical_gpus: GPUs are numbers only, as in an emulated cloud: no node asks nvidia-smi for
            them.
    """

    install_ray: bool = False
    min_driver: _Driver = ""
    min_cuda: _Cuda = ""
    logical_gpus: bool = False


class HeadPlan(StartPlan):
    """The Ray head to be started.

    Attributes:
        port: Of the GCS. `auto` ports are chosen by the node program.
        dashboard_host: Address the dashboard and the jobs API listen on.
        client_port: Of the Ray Client server (`ray://`), which takes 90 MB.
    """

    labels: _Labels = Field(default_factory=lambda: dict(HEAD_LABELS))
    port: _Port = AUTO
    dashboard_host: str = Field(default="127.0.0.1", pattern=r"^[0-9A-Fa-f.:]{2,39}$")
    dashboard_port: _Port = AUTO
    client_port: _Port | Literal["off"] = OFF

"""What exists in the emulated cloud, and what it refuses although the schema allows it.

The rules are Google's published ones; each names its page of the Compute Engine documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.emulators.gcp.answers import ApiError


class MachineType(NamedTuple):
    """A machine type: the GPUs it comes with, if any."""

    gpu: str = ""
    gpu_count: int = 0


MACHINE_TYPES = {
    "a2-highgpu-1g": MachineType("nvidia-tesla-a100", 1),
    "a2-highgpu-8g": MachineType("nvidia-tesla-a100", 8),
    "a3-highgpu-8g": MachineType("nvidia-h100-80gb", 8),
    "e2-small": MachineType(),
    "g2-standard-4": MachineType("nvidia-l4", 1),
    "g2-standard-8": MachineType("nvidia-l4", 1),
    "g2-standard-24": MachineType("nvidia-l4", 2),
    "n1-standard-8": MachineType(),
}
ZONES = tuple(
    f"{region}-{letter}"
    for region, letters in (("us-central1", "abcf"), ("us-east1", "bcd"), ("europe-west4", "abc"))
    for letter in letters
)
IMAGES = {
    "projects/deeplearning-platform-release/global/images/family/common-cu128-ubuntu-2204",
    "projects/test-project/global/images/hybrid-node-1",
    "projects/test-project/global/images/family/hybrid-node",
}
NETWORKS = {"default", "hybrid"}

_MOST_TOGETHER = 5_000
_MAX_LABELS = 64
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_MAX_VALUE_BYTES = 262_144
_MAX_METADATA_BYTES = 524_288
_METADATA_KEY = re.compile(r"[a-zA-Z0-9_-]{1,127}")
_RUN_S = range(30, 120 * 24 * 3600 + 1)
_TAG = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


def name_of(link: str) -> str:
    """Return the last part of a resource's address."""
    return link.rsplit("/", 1)[-1]


def check_insert(project: str, zone: str, body: dict[str, Any]) -> None:
    """Raise `ApiError` unless an instance can be made from `body`."""
    if zone not in ZONES:
        raise ApiError(400, f"Invalid value for field 'zone': '{zone}'. Unknown zone.")
    for message in _problems(zone, body):
        raise ApiError(400, message)
    _check_what_it_names(project, zone, body)


def check_bulk(body: dict[str, Any]) -> None:
    """Raise `ApiError` unless instances can be made from `body` (docs: Create VMs in bulk)."""
    properties = body.get("instanceProperties", {})
    # Google's words in the description of InstanceProperties.machineType.
    if "/" in properties.get("machineType", ""):
        raise ApiError(500, "Internal error. Please try again.", "internalError")
    for message in _bulk_problems(body, properties):
        raise ApiError(400, message)


def _bulk_problems(body: dict[str, Any], properties: dict[str, Any]) -> Iterator[str]:
    names = body.get("perInstanceProperties", {})
    count = int(body.get("count", 0))
    if not 1 <= count <= _MOST_TOGETHER:
        yield f"Invalid value for field 'resource.count': '{count}'."
    if int(body.get("minCount", count)) > count:
        yield "Invalid value for field 'resource.minCount': it is more than count."
    if bool(names) == bool(body.get("namePattern")):
        yield "Either namePattern or perInstanceProperties must be set."
    if names and len(names) != count:
        yield "The number of perInstanceProperties must be count."
    for name in names:
        if not _TAG.fullmatch(name):
            yield f"Invalid value for field 'resource.perInstanceProperties.key': '{name}'."
    disks = [disk.get("initializeParams", {}).get("diskType", "") for disk in properties["disks"]]
    gpus = [gpu["acceleratorType"] for gpu in properties.get("guestAccelerators", ())]
    for value in [*disks, *gpus]:
        if "/" in value:
            yield f"Invalid value '{value}': a name is needed, not an address."


def check_labels(labels: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with labels (docs: Label resources, requirements)."""
    if len(labels) > _MAX_LABELS:
        yield f"Invalid value for field 'resource.labels': more than {_MAX_LABELS} labels."
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            yield f"Invalid value for field 'resource.labels': '{key}'. Label key is invalid."
        if not _LABEL_VALUE.fullmatch(value):
            yield f"Invalid value for field 'resource.labels': '{value}'. Label value is invalid."


def check_metadata(metadata: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with metadata (docs: Set custom metadata, limitations)."""
    items = metadata.get("items", [])
    keys = [item["key"] for item in items]
    if len(set(keys)) < len(keys):
        yield "Invalid value for field 'metadata': Metadata has duplicate keys."
    sizes = [len(item["key"].encode()) + len(item.get("value", "").encode()) for item in items]
    if sum(sizes) > _MAX_METADATA_BYTES:
        yield "Invalid value for field 'metadata': Metadata size exceeds 512 KB."
    for item in items:
        if not _METADATA_KEY.fullmatch(item["key"]):
            yield f"Invalid value for field 'metadata.items.key': '{item['key']}'."
        if len(item.get("value", "").encode()) > _MAX_VALUE_BYTES:
            yield (
                f"Value for metadata key '{item['key']}' is too large: maximum size is "
                f"{_MAX_VALUE_BYTES} bytes."
            )


def _problems(zone: str, body: dict[str, Any]) -> Iterator[str]:
    for field in ("disks", "networkInterfaces", "machineType"):
        if not body.get(field):
            yield f"Invalid value for field 'resource.{field}': ''. Required field missing."
    yield from check_labels(body.get("labels", {}))
    yield from check_metadata(body.get("metadata", {}))
    for tag in body.get("tags", {}).get("items", []):
        if not _TAG.fullmatch(tag):
            yield f"Invalid value for field 'resource.tags.items': '{tag}'."
    yield from _scheduling_problems(body)
    wanted = f"zones/{zone}/machineTypes/"
    if wanted not in body.get("machineType", wanted):
        yield f"Invalid value for field 'resource.machineType': '{body['machineType']}'."


def _scheduling_problems(body: dict[str, Any]) -> Iterator[str]:
    """Yield broken rules (docs: Create Spot VMs; Limit the run time of a VM; About GPUs)."""
    scheduling = body.get("scheduling", {})
    machine = MACHINE_TYPES.get(name_of(body.get("machineType", "")), MachineType())
    has_gpus = bool(machine.gpu_count or body.get("guestAccelerators"))
    is_spot = scheduling.get("provisioningModel") == "SPOT"
    if (has_gpus or is_spot) and scheduling.get("onHostMaintenance") != "TERMINATE":
        yield "Instances with guest accelerators do not support live migration."
    if is_spot and scheduling.get("automaticRestart", not is_spot):
        yield "Scheduling: automaticRestart must be disabled for Spot VMs."
    duration = scheduling.get("maxRunDuration")
    action = scheduling.get("instanceTerminationAction")
    if duration is not None and int(duration.get("seconds", 0)) not in _RUN_S:
        yield "Invalid value for field 'resource.scheduling.maxRunDuration'. Out of range."
    if duration is not None and action is None:
        yield "instanceTerminationAction must be specified with maxRunDuration."
    if action is not None and duration is None and not is_spot:
        yield "instanceTerminationAction is only for Spot VMs and VMs with a time limit."


def _check_what_it_names(project: str, zone: str, body: dict[str, Any]) -> None:
    machine_type = name_of(body["machineType"])
    if machine_type not in MACHINE_TYPES:
        where = f"projects/{project}/zones/{zone}/machineTypes/{machine_type}"
        message = (
            f"Invalid value for field 'resource.machineType': '{body['machineType']}'. "
            f"The referenced resource '{where}' cannot be found."
        )
        raise ApiError(400, message)
    for disk in body["disks"]:
        image = disk.get("initializeParams", {}).get("sourceImage", "")
        if image not in IMAGES:
            raise ApiError(404, f"The resource '{image}' was not found")
    for interface in body["networkInterfaces"]:
        link = interface.get("subnetwork") or interface.get("network") or "default"
        region = zone.rpartition("-")[0]
        if "subnetwork" in interface and f"regions/{region}/" not in link:
            message = (
                f"Invalid value for field 'resource.networkInterfaces[0].subnetwork': '{link}'."
            )
            raise ApiError(400, f"{message} The subnetwork is not in the region of the instance.")
        if name_of(link) not in NETWORKS:
            raise ApiError(404, f"The resource '{link}' was not found")

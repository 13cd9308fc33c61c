"""Which IAM permissions each request needs, as Google's reference of the method lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.emulators.gcp.discovery import Call

_CREATE = ("compute.instances.create", "compute.disks.create", "compute.subnetworks.use")
# Only the methods that the adapter and the tests call.
_ALWAYS = {
    "instances.insert": _CREATE,
    "instances.bulkInsert": _CREATE,
    "instances.get": ("compute.instances.get",),
    "instances.aggregatedList": ("compute.instances.list",),
    "instances.delete": ("compute.instances.delete",),
    "instances.setMetadata": ("compute.instances.setMetadata",),
    "instances.stop": ("compute.instances.stop",),
    "zoneOperations.get": ("compute.zoneOperations.get",),
    "zoneOperations.wait": ("compute.zoneOperations.get",),
}
_WITH_FIELD = {
    "labels": ("compute.instances.setLabels",),
    "metadata": ("compute.instances.setMetadata",),
    "tags": ("compute.instances.setTags",),
    "serviceAccounts": ("compute.instances.setServiceAccount", "iam.serviceAccounts.actAs"),
}


def needed(call: Call, body: object) -> Iterator[str]:
    """Yield the permissions of one request."""
    yield from _ALWAYS.get(call.name, ("compute.instances.update",))
    if call.name == "instances.insert" and isinstance(body, dict):
        yield from _of_insert(body)
    elif call.name == "instances.bulkInsert" and isinstance(body, dict):
        yield from _of_insert(body.get("instanceProperties", {}))


def _of_insert(body: dict[str, Any]) -> Iterator[str]:
    for field, permissions in _WITH_FIELD.items():
        if body.get(field):
            yield from permissions
    for disk in body.get("disks", ()):
        parameters = disk.get("initializeParams", {})
        if parameters.get("labels"):
            yield "compute.disks.setLabels"
        if parameters.get("sourceImage"):
            yield "compute.images.useReadOnly"
    for interface in body.get("networkInterfaces", ()):
        if interface.get("accessConfigs"):
            yield "compute.subnetworks.useExternalIp"

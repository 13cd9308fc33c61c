"""The create calls of an instance and of a gang, in the words of Google's API; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from hybrid.core.models import Labels
from providers.gcp.naming import Place
from providers.gcp.params import Pool
from providers.gcp.userdata import EXPIRY_KEY, expiry_text, shutdown_script

Json: TypeAlias = dict[str, object]

_GIB = 2**30
_ALL_APIS = "https://www.googleapis.com/auth/cloud-platform"


def instance_body(
    pool: Pool,
    place: Place,
    *,
    project: str,
    labels: Labels,
    script: str,
    expires_at_s: float,
) -> Json:
    """Return the body of `instances.insert`: everything the machine will ever be told.

    Args:
        pool: What to rent.
        place: Where, and under which name.
        project: Whose subnetwork.
        labels: Of the instance and its disk.
        script: What it runs when it has booted.
        expires_at_s: First expiry, which the script follows.
    """
    body = _properties(pool, place.zone, project=project, labels=labels)
    return {"name": place.name, **body, "metadata": _first_metadata(pool, script, expires_at_s)}


def gang_body(
    pool: Pool,
    names: Collection[str],
    *,
    project: str,
    labels: Labels,
    script: str,
    expires_at_s: float,
) -> Json:
    """Return the body of `instances.bulkInsert` for machines that differ in their names only.

    In it machine types, disk types and GPUs are names; with a zone Google answers
    `INTERNAL_ERROR`. For the arguments see `instance_body`.
    """
    properties = _properties(pool, None, project=project, labels=labels)
    properties["metadata"] = _first_metadata(pool, script, expires_at_s)
    return {
        # With fewer than that Google makes none, and takes back those it has made.
        "count": str(len(names)),
        "minCount": str(len(names)),
        "perInstanceProperties": {name: {} for name in names},
        "instanceProperties": properties,
    }


def _properties(pool: Pool, zone: str | None, *, project: str, labels: Labels) -> Json:
    """Return what single machines and gangs are told alike; without a zone types are names."""
    body: Json = {
        "machineType": _type(zone, "machineTypes", pool.instance_type),
        "labels": dict(labels),
        "scheduling": _scheduling(pool),
        "disks": [_boot_disk(pool, _type(zone, "diskTypes", pool.disk_type), labels)],
        "networkInterfaces": [_network(pool, project)],
    }
    if pool.network_tags:
        body["tags"] = {"items": list(pool.network_tags)}
    if pool.service_account:
        # What it may do is set by its roles; the scope only must not forbid it.
        body["serviceAccounts"] = [{"email": pool.service_account, "scopes": [_ALL_APIS]}]
    if pool.attached_gpu and pool.gpus:
        gpu = _type(zone, "acceleratorTypes", pool.attached_gpu)
        body["guestAccelerators"] = [{"acceleratorType": gpu, "acceleratorCount": pool.gpus.count}]
    return body


def _type(zone: str | None, kind: str, name: str) -> str:
    return f"zones/{zone}/{kind}/{name}" if zone else name


def _first_metadata(pool: Pool, script: str, expires_at_s: float) -> Json:
    items = {"startup-script": script, EXPIRY_KEY: expiry_text(expires_at_s)}
    return metadata(items | ({"shutdown-script": shutdown_script()} if pool.use_spot else {}))


def metadata(items: Mapping[str, str], fingerprint: str = "") -> Json:
    """Return metadata; with the fingerprint of what it replaces, if it does."""
    content: Json = {"items": [{"key": key, "value": value} for key, value in items.items()]}
    return content | ({"fingerprint": fingerprint} if fingerprint else {})


def _scheduling(pool: Pool) -> Json:
    return {
        "provisioningModel": "SPOT" if pool.use_spot else "STANDARD",
        # Machines with GPUs cannot be moved, and one that restarts has lost its Ray node.
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        # The dead-man switch that needs neither the controller nor the node. Both also make a
        # spot instance that is taken back vanish, disk and all.
        "maxRunDuration": {"seconds": str(int(pool.max_life))},
        "instanceTerminationAction": "DELETE",
    }


def _boot_disk(pool: Pool, disk_type: str, labels: Labels) -> Json:
    return {
        "boot": True,
        "autoDelete": True,
        "initializeParams": {
            "sourceImage": pool.image,
            "diskSizeGb": str(-(-pool.disk // _GIB)),
            "diskType": disk_type,
            "labels": dict(labels),
        },
    }


def _network(pool: Pool, project: str) -> Json:
    link = pool.subnetwork
    if "/" not in link:
        link = f"projects/{project}/regions/{pool.region}/subnetworks/{link}"
    interface: Json = {"subnetwork": link}
    if pool.external_ip:
        interface["accessConfigs"] = [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]
    return interface

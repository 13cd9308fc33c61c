"""Parts of instances: what is read from a request, and what the cloud adds to it; pure."""

from __future__ import annotations

import base64
import hashlib
from copy import deepcopy
from typing import Any, TypeAlias

from tests.emulators.gcp.answers import stamp
from tests.emulators.gcp.rules import MACHINE_TYPES, name_of

Json: TypeAlias = dict[str, Any]

_EXPIRY = "hybrid-expires-at"
_ENDED = ("TERMINATED", "SUSPENDED", "STOPPED")


def is_on(instance: Json) -> bool:
    return instance["status"] not in _ENDED


def gpus(zone: str, body: Json) -> tuple[str, str, int]:
    """Return region, quota and number of the GPUs that an instance takes."""
    machine = MACHINE_TYPES[name_of(body["machineType"])]
    gpu, count = machine.gpu, machine.gpu_count
    for attached in body.get("guestAccelerators", ()):
        gpu, count = name_of(attached["acceleratorType"]), int(attached["acceleratorCount"])
    short = gpu.removeprefix("nvidia-tesla-").removeprefix("nvidia-").replace("-", "_").upper()
    is_spot = body.get("scheduling", {}).get("provisioningModel") == "SPOT"
    metric = f"{'PREEMPTIBLE_' if is_spot else ''}NVIDIA_{short}_GPUS" if gpu else ""
    return zone.rpartition("-")[0], metric, count


def resource_status(instance: Json, now_s: float) -> Json:
    duration = instance.get("scheduling", {}).get("maxRunDuration")
    if duration is None:
        return {"scheduling": {}}
    return {"scheduling": {"terminationTimestamp": stamp(now_s + int(duration["seconds"]))}}


def guest_expiry_s(instance: Json) -> float:
    """Return when our program inside the machine turns it off, if it runs there."""
    items = {item["key"]: item.get("value", "") for item in instance["metadata"].get("items", [])}
    is_ours = _EXPIRY in items.get("startup-script", "")
    return float(items.get(_EXPIRY, "inf")) if is_ours else float("inf")


def metadata(body: Json) -> Json:
    items = deepcopy(body.get("items", []))
    return {"kind": "compute#metadata", "fingerprint": fingerprint(items), "items": items}


def fingerprint(content: object) -> str:
    return base64.b64encode(hashlib.sha256(repr(content).encode()).digest()[:8]).decode()


def path(link: str) -> str:
    return link.partition("/compute/v1/")[2]

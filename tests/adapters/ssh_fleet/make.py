"""Facts of hosts, for tests that are about one of them."""

from __future__ import annotations

from typing import Any

from hybrid.adapters.ssh_fleet import Wanted
from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.adapters.ssh_fleet.judging import Finding, judge

A100 = {"uuid": "GPU-a", "name": "NVIDIA A100-SXM4-80GB", "memory_mib": 81920, "driver": "570.1"}
RTX3070 = {"uuid": "GPU-b", "name": "NVIDIA GeForce RTX 3070", "memory_mib": 8192}
RTX4090 = {"uuid": "GPU-c", "name": "NVIDIA GeForce RTX 4090", "memory_mib": 24564}
GB10 = {"uuid": "GPU-d", "name": "NVIDIA GB10", "memory_mib": None}
_GIB = 2**30


def facts(**changes: Any) -> Facts:
    healthy: dict[str, Any] = {
        "os": "Debian",
        "kernel": "6.1",
        "machine": "x86_64",
        "hostname": "gpu-1",
        "user": "ops",
        "uid": 1000,
        "home": "/home/ops",
        "is_home_writable": True,
        "machine_id": "m1",
        "boot_id": "b1",
        "network": "net:[1]",
        "python": "/opt/ray/bin/python",
        "python_version": "3.11.7",
        "ray_version": "2.60.0",
        "cpu_count": 8,
        "memory_bytes": 64 * _GIB,
        "memory_available_bytes": 60 * _GIB,
        "disk_free_bytes": {"/home/ops": 100 * _GIB, "/tmp": 50 * _GIB},
        "shm_free_bytes": 32 * _GIB,
        "gpus": {},
        "node_ip": "10.0.0.7",
        "dials": {"gcs": "", "controller": ""},
        "clock_ahead_s": 0.02,
    }
    return Facts.model_validate(healthy | changes)


def wanted(**changes: Any) -> Wanted:
    usual: dict[str, Any] = {
        "address": "ops@10.0.0.7",
        "python_version": "3.11.2",
        "ray_version": "2.60.0",
        "ports": {"gcs": "Ray's head 10.0.0.5:6379", "controller": "the controller 10.0.0.5:8000"},
    }
    return Wanted(**(usual | changes))


def finding(check: str, *, want: Wanted | None = None, **changes: Any) -> Finding:
    """Return what is found about one thing of a host that is healthy but for `changes`."""
    return next(item for item in judge(facts(**changes), want or wanted()) if item.check == check)

"""Machines with bodies: what an emulated cloud rents out boots, and is a host of its own.

A body is a set of Linux namespaces on this machine (network, processes, mounts, name, IPC) with
its own address, `/tmp`, `/run`, `/dev/shm` and process 1. It runs the instance's real user data
from this machine's own files, so the interpreter of the tests is the one of the image. Killing
process 1 cuts the power. It needs root and iproute2; `needed` says so where they are missing.

    network -> body (init.py inside, metadata.py beside) -> hypervisor (one for each cloud)
"""

from __future__ import annotations

from tests.bodies.body import Body, Boot
from tests.bodies.hypervisor import Hypervisor
from tests.bodies.need import have_bodies, require_bodies
from tests.bodies.network import Network
from tests.bodies.sides import side_of

__all__ = ["Body", "Boot", "Hypervisor", "Network", "have_bodies", "require_bodies", "side_of"]

"""A pretended cloud on this machine: its instances are real Ray nodes, started as processes.

It has what real clouds have: stock that runs out, a boot time, a price, owner tags, a lease
that ends an instance whose controller is gone, and instances that outlive the controller.
"""

from __future__ import annotations

from providers.local.provider import LocalProvider, make

__all__ = ["LocalProvider", "make"]

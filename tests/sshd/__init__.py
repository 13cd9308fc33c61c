"""Real OpenSSH servers of our own: on loopback, or in network namespaces as if on other hosts."""

from __future__ import annotations

"""Baidu's BCC on loopback, made from the vendor's documentation and SDKs.

It checks signatures (BCE auth v1) with code of its own, knows the fields that the vendor's Go SDK
declares, and can be told to misbehave. What Baidu does not publish, such as how a sold-out type
is called, is invented here and named in docs/fidelity/baidu.md.
"""

from __future__ import annotations

from tests.emulators.baidu.cloud import Cloud
from tests.emulators.baidu.faults import Fault
from tests.emulators.baidu.server import ACCESS_KEY, SECRET_KEY, BaiduEmulator

__all__ = ["ACCESS_KEY", "SECRET_KEY", "BaiduEmulator", "Cloud", "Fault", "start"]


def start(port: int = 0) -> BaiduEmulator:
    """Start the emulator; see `tests.emulators.StartEmulator`."""
    return BaiduEmulator(port)

"""AWS on loopback: moto's EC2 with what it lacks, SSM parameters, prices, instance metadata.

moto makes the instances, tags, templates and networks. Added here, since moto ignores them:
client tokens, stock, quota, fleets (partial ones, and with tags and user data of their own),
delayed and paged lists, faults of every kind, lost answers, spot interruptions, instance
metadata, and the checks of signatures, images, types, tags and user data.
"""

from __future__ import annotations

from tests.emulators.aws.controls import ACCESS_KEY, IMAGE, SECRET_KEY, Controls
from tests.emulators.aws.server import AwsEmulator

__all__ = ["ACCESS_KEY", "IMAGE", "SECRET_KEY", "AwsEmulator", "Controls", "start"]


def start(port: int = 0) -> AwsEmulator:
    """Start the emulator; see `tests.emulators.StartEmulator`."""
    return AwsEmulator(port)

"""The clouds on loopback: each speaks its cloud's wire protocol and can be told to misbehave.

A cloud is a folder here that has a function `start(port: int = 0) -> Emulator`, and one line in
`EMULATORS`. It is imported when it is asked for: the libraries behind it are heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Protocol

EMULATORS: Mapping[str, str] = {
    "aws": "tests.emulators.aws:start",
    "baidu": "tests.emulators.baidu:start",
    "gcp": "tests.emulators.gcp:start",
}
"""Name -> what starts it."""


class Emulator(Protocol):
    """A cloud that runs in this process, on threads of its own."""

    @property
    def url(self) -> str:
        """Return where it listens, such as `http://127.0.0.1:4999`."""
        ...

    @property
    def usage(self) -> str:
        """Return how to point the adapter at it, and how to make it misbehave, as text."""
        ...

    def stop(self) -> None:
        """Close the port and end all threads; a second call does nothing."""
        ...


class StartEmulator(Protocol):
    """The signature behind a name in `EMULATORS`."""

    def __call__(self, port: int = 0) -> Emulator:
        """Start one on `port` of 127.0.0.1 (0: any free port) and return it, listening."""
        ...


def start(name: str, port: int = 0) -> Emulator:
    """Start the emulator `name`. Raises `KeyError` for an unknown name."""
    begin: StartEmulator = resolve_name(EMULATORS[name])
    return begin(port)

"""Ray's internal key-value store, from wherever a job's process runs."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from hybrid.job.context import ENVIRONMENT
from hybrid.job.messages import NAMESPACE


class Store(Protocol):
    """Notes by key."""

    def get(self, key: str) -> bytes | None:
        """Return a note, or `None`."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Leave a note."""
        ...


class ConnectedStore:
    """The store of the Ray that this process is connected to."""

    def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        from ray.experimental import internal_kv

        found: bytes | None = internal_kv._internal_kv_get(key, namespace=NAMESPACE)
        return found

    def put(self, key: str, value: bytes) -> None:
        """See `Store.put`."""
        from ray.experimental import internal_kv

        internal_kv._internal_kv_put(key, value, overwrite=True, namespace=NAMESPACE)


class GcsStore:
    """The store of a Ray that this process is not connected to."""

    def __init__(self, address: str) -> None:
        """Connect to the control service at `host:port`."""
        from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled

        self._gcs: Any = GcsClient(address=address)

    def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        found: bytes | None = self._gcs.internal_kv_get(key.encode(), namespace=NAMESPACE)
        return found

    def put(self, key: str, value: bytes) -> None:
        """See `Store.put`."""
        self._gcs.internal_kv_put(key.encode(), value, True, namespace=NAMESPACE)  # noqa: FBT003


_opened: dict[str, Store] = {}


def store_of() -> Store | None:
    """Return the store of the cluster that this process belongs to, or `None` without one."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return ConnectedStore()
    address = ENVIRONMENT.get("RAY_ADDRESS", "")
    if not address or ":" not in address:
        return None
    if address not in _opened:
        _opened[address] = GcsStore(address)
    return _opened[address]

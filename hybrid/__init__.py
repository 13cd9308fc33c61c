"""One Ray cluster over your own GPU machines and your cloud accounts.

The names below are loaded on first use, so that `import hybrid` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid import errors
    from hybrid.client import AsyncClient, Checkpoint, Client, DataEntry, Job
    from hybrid.job.checkpoint import (
        checkpoint_exit,
        checkpoint_requested,
        checkpoint_saved,
        checkpoint_url,
        resume_from,
    )
    from hybrid.job.group import gang
    from hybrid.placement import cloud_only, onprem_only, prefer_onprem

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Checkpoint",
    "Client",
    "DataEntry",
    "Job",
    "__version__",
    "checkpoint_exit",
    "checkpoint_requested",
    "checkpoint_saved",
    "checkpoint_url",
    "cloud_only",
    "errors",
    "gang",
    "onprem_only",
    "prefer_onprem",
    "resume_from",
]

_HOME = {
    "AsyncClient": "hybrid.client",
    "Checkpoint": "hybrid.client",
    "Client": "hybrid.client",
    "DataEntry": "hybrid.client",
    "Job": "hybrid.client",
    "checkpoint_exit": "hybrid.job.checkpoint",
    "checkpoint_requested": "hybrid.job.checkpoint",
    "checkpoint_saved": "hybrid.job.checkpoint",
    "checkpoint_url": "hybrid.job.checkpoint",
    "cloud_only": "hybrid.placement",
    "gang": "hybrid.job.group",
    "onprem_only": "hybrid.placement",
    "prefer_onprem": "hybrid.placement",
    "resume_from": "hybrid.job.checkpoint",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that owns it."""
    from importlib import import_module

    if name == "errors":
        return import_module("hybrid.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'hybrid' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Return the public names only."""
    return sorted(__all__)

"""What a job knows of itself, from its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# A job's environment is how the controller talks to it; these are not settings.
ENVIRONMENT: Mapping[str, str] = os.environ

NOTES = "HYBRID_NOTES_DIR"
"""Folder in which the wrapper and the user's command leave each other notes."""

LEFT = 75
"""Exit code of a driver that leaves before it is done, because it was asked to save."""


@dataclass(frozen=True)
class Context:
    """The attempt that this process belongs to.

    Attributes:
        attempt: 1, 2, ...
        slots: (Ray node id, GPUs) of each node that it holds.
        bundle: What its placement group holds on each node; empty without one.
        nodes: Nodes of a gang; 0 when the driver itself uses the GPUs.
        notes: Folder shared with the wrapper; `None` on other machines.
    """

    job_id: str
    attempt: int
    slots: tuple[tuple[str, float], ...]
    bundle: Mapping[str, float]
    nodes: int
    checkpoint_url: str
    resume_from: str
    notes: Path | None


def context(env: Mapping[str, str] = ENVIRONMENT) -> Context | None:
    """Return the context of this process, or `None` outside of jobs that hybrid wraps."""
    job_id = env.get("HYBRID_JOB_ID", "")
    if not job_id:
        return None
    notes = env.get(NOTES, "")
    return Context(
        job_id=job_id,
        attempt=int(env.get("HYBRID_ATTEMPT") or 1),
        slots=tuple((str(n), float(g)) for n, g in json.loads(env.get("HYBRID_SLOTS") or "[]")),
        bundle=json.loads(env.get("HYBRID_GROUP_BUNDLE") or "{}"),
        nodes=int(env.get("HYBRID_NODES") or 0),
        checkpoint_url=env.get("HYBRID_CHECKPOINT_URL", ""),
        resume_from=env.get("HYBRID_RESUME_FROM", ""),
        notes=Path(notes) if notes and Path(notes).is_dir() else None,
    )

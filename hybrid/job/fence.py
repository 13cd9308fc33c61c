"""Keeps a job's tasks in its placement group where Ray alone would let them out.

Ray places a task in its parent's group only if the task names no strategy of its own. Ray Data
names one for everything that it reads (`SPREAD`), and so would leave. Ray calls `install` at the
start of each worker of the job. It stops mistakes, not intent: a program can undo it, or connect
to Ray as a driver of its own (docs/decisions/0010-jobs-that-hold-nodes.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from hybrid.job.context import ENVIRONMENT, context

HOOK = "hybrid.job.fence.install"
"""For Ray's `worker_process_setup_hook`."""

HOME = {"site": "onprem"}
_OPTIONS = ("scheduling_strategy", "label_selector", "fallback_strategy", "placement_group")


def install() -> None:
    """Change this worker's Ray: what the job starts stays in its group, new groups at home."""
    here = context()
    if here is None or not here.bundle:
        return
    from ray import actor, remote_function, util

    for owner in (remote_function.RemoteFunction, actor.ActorClass):
        owner._remote = _held(owner._remote)  # Ray has no hook for this
    if ENVIRONMENT.get("HYBRID_SITE") == "onprem":
        # The name of the module is also that of its function.
        module = import_module("ray.util.placement_group")
        module.placement_group = util.placement_group = at_home(module.placement_group)  # type: ignore[attr-defined]


def _held(start: Callable[..., Any]) -> Callable[..., Any]:
    def held(self: Any, *args: Any, **options: Any) -> Any:
        return start(self, *args, **without_ways_out(options))

    return held


def without_ways_out(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a task or an actor without those that lead out of its group.

    A group named by the task itself is kept: it was made inside the job.
    """
    kept = dict(options)
    if hasattr(kept.get("scheduling_strategy"), "placement_group"):
        return kept
    for name in _OPTIONS:
        if name in kept:
            kept[name] = "default" if name == "placement_group" else None
    return kept


def at_home(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `placement_group` whose groups are on nodes of ours."""

    def made(bundles: Sequence[Any], *args: Any, **options: Any) -> Any:
        asked = options.get("bundle_label_selector") or [{}] * len(bundles)
        options["bundle_label_selector"] = [{**selector, **HOME} for selector in asked]
        return make(bundles, *args, **options)

    return made

"""Where the tasks of a job ran, by Ray's task events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hybrid.adapters.ray.dashboard import Dashboard
from hybrid.core.errors import ClusterError
from hybrid.core.ports import TaskCount

_MOST = 10_000  # of Ray's state API
_KINDS: Mapping[str, Literal["task", "actor"]] = {
    "NORMAL_TASK": "task",
    "ACTOR_CREATION_TASK": "actor",
}


def tasks_of(dashboard: Dashboard, job_id: str) -> tuple[Sequence[TaskCount], bool]:
    """Return the tasks of every driver of a job by node, and whether these are all.

    A job's driver may start others, each a job of its own for Ray; all name the submission.
    """
    response = dashboard.call("GET", "/api/jobs/")
    listed = dashboard.json(response, "list the jobs")
    try:
        # `job_id` is Ray's own, of one driver.
        drivers = [raw["job_id"] for raw in listed if raw.get("submission_id") == job_id]
        drivers += [
            raw["job_id"]
            for raw in listed
            if not raw.get("submission_id")
            and (raw.get("metadata") or {}).get("job_submission_id") == job_id
        ]
    except (AttributeError, KeyError, TypeError) as err:
        raise _misunderstood(dashboard, err) from err
    counts: Counter[tuple[str, Literal["task", "actor"], str]] = Counter()
    is_complete = True
    for driver in dict.fromkeys(d for d in drivers if d):
        path = "/api/v0/tasks?detail=1&timeout=30&limit=10000&filter_keys=job_id"
        query = f"{path}&filter_predicates=%3D&filter_values={driver}"
        answer = dashboard.json(dashboard.call("GET", query, timeout=40.0), "list the tasks")
        is_complete &= _count(answer, counts, dashboard)
    found = [
        TaskCount(node_id=node_id, kind=kind, name=name, count=count)
        for (node_id, kind, name), count in sorted(counts.items())
    ]
    return found, is_complete


def _count(answer: Any, counts: Counter[Any], dashboard: Dashboard) -> bool:
    """Add one driver's tasks; return whether Ray named all of them."""
    try:
        result = answer["data"]["result"]
        for raw in result["result"]:
            kind = _KINDS.get(raw.get("type") or "")
            if kind and raw.get("node_id"):
                counts[raw["node_id"], kind, raw.get("func_or_class_name") or raw["name"]] += 1
        return int(result["num_filtered"]) <= len(result["result"]) and not result.get(
            "partial_failure_warning"
        )
    except (AttributeError, KeyError, TypeError, ValueError) as err:
        raise _misunderstood(dashboard, err) from err


def _misunderstood(dashboard: Dashboard, err: Exception) -> ClusterError:
    return ClusterError(
        f"Ray's dashboard at {dashboard.url} lists tasks in a form that is not understood "
        f"({type(err).__name__}: {err}); use the version of Ray that hybrid asks for"
    )

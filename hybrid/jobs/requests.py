"""What Ray is asked to run for a job: its command as it is, or inside our wrapper.

The wrapper (`python -m hybrid.job`) runs beside the user's command wherever a job needs more than
Ray Jobs gives: to be asked to save, to hold several nodes, to keep its tasks at home.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hybrid.core.models import Job, JobSpec
from hybrid.core.ports import Packages
from hybrid.jobs.params import QueueParams
from hybrid.jobs.views import NODE_ID

Kit: TypeAlias = Callable[[], tuple[str, bytes]]
"""Returns the package with our own sources, for machines where hybrid is not installed."""

WRAPPER = "python -m hybrid.job"


def no_kit() -> tuple[str, bytes]:
    """Return no package: hybrid is installed wherever drivers run."""
    return "", b""


@dataclass(frozen=True)
class Request:
    """One submission.

    Attributes:
        spec: With the command, the environment and the resources that Ray gets.
        selector: Labels of the node for the driver.
        kit: Name of the package for its Python path, or `""`.
    """

    spec: JobSpec
    selector: Mapping[str, str]
    kit: str = ""
    kit_content: bytes = b""

    def uploads(self, packages: Packages) -> Iterator[tuple[str, bytes]]:
        """Yield what Ray must have first, by name."""
        if self.spec.package:
            yield self.spec.package, packages.get(self.spec.package)
        if self.kit:
            yield self.kit, self.kit_content


def is_wrapped(spec: JobSpec) -> bool:
    """Return whether a job's command runs inside our wrapper."""
    return spec.checkpoint is not None or spec.holds_group or bool(spec.data)


def request_of(job: Job, params: QueueParams, kit: Kit) -> Request:
    """Return what to ask Ray for the present attempt of a job."""
    spec = job.spec
    selector = {NODE_ID: job.slots[0].node_id} if job.slots else {}
    if not is_wrapped(spec):
        return Request(spec, selector)
    changes: dict[str, object] = {
        "entrypoint": WRAPPER,
        "env": {**spec.env, **_environment(job, params)},
    }
    if spec.holds_group:
        changes |= {"gpus": 0.0, "cpus": 0.0, "memory_bytes": 0, "nodes": 0}
    name, content = kit()
    return Request(spec.model_copy(update=changes), selector, name, content)


def checkpoint_url(job_id: str, spec: JobSpec, params: QueueParams) -> str:
    """Return where a job saves; `""` when nothing says where."""
    if spec.checkpoint is None:
        return ""
    base = params.checkpoint_url.rstrip("/")
    return spec.checkpoint.url or (f"{base}/{job_id}" if base else "")


def _environment(job: Job, params: QueueParams) -> Mapping[str, str]:
    spec = job.spec
    env = {
        "HYBRID_ENTRYPOINT": spec.entrypoint,
        "HYBRID_JOB_ID": job.job_id,
        "HYBRID_ATTEMPT": str(job.attempt),
        "HYBRID_SITE": spec.site,
        "HYBRID_SLOTS": json.dumps([list(slot) for slot in job.slots]),
        "HYBRID_NODES": str(spec.nodes),
    }
    if spec.holds_group:
        env["HYBRID_GROUP_BUNDLE"] = json.dumps(
            {"GPU": spec.gpus, "CPU": spec.cpus_each, "memory": spec.memory_bytes}
        )
    if spec.checkpoint is not None:
        env["HYBRID_CHECKPOINT_URL"] = checkpoint_url(job.job_id, spec, params)
        env["HYBRID_SAVE_S"] = f"{spec.checkpoint.save_s:g}"
        if spec.checkpoint.signal:
            env["HYBRID_SAVE_SIGNAL"] = spec.checkpoint.signal
        if job.resume_from:
            env["HYBRID_RESUME_FROM"] = job.resume_from
    if spec.data:
        env["HYBRID_DATA"] = json.dumps([[entry.url, entry.sha256] for entry in spec.data])
    return env

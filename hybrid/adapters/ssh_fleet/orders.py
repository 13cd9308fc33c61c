"""What a host's node program is told: the plan of the configuration, held against the host."""

from __future__ import annotations

import hashlib

from hybrid.adapters.ssh_fleet.choosing import Choice
from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.core.bootstrap import NodePlan, ray_node_command, ray_node_environment


def fitted(plan: NodePlan, facts: Facts, choice: Choice, *, cluster_id: str, name: str) -> NodePlan:
    """Return the plan with what only the host knows: paths, its GPUs and their label.

    Args:
        plan: From the configuration.
        facts: Of the host.
        choice: GPUs that it brings.
        cluster_id: Marks the cluster.
        name: The host's.
    """
    short = hashlib.sha256(name.encode()).hexdigest()[:8]
    others = {k: v for k, v in plan.resources.items() if not _is_about_gpus(k)}
    changes = {
        "python": facts.python,
        "temp_dir": f"/tmp/hybrid-{facts.uid}/{cluster_id}/{short}",  # noqa: S108  # as ours
        "resources": {**others, **choice.shape},
        "labels": {**choice.labels, **plan.labels},
        "are_gpus_logical": False,
    }
    return NodePlan.model_validate(plan.model_dump() | changes)


def orders(plan: NodePlan, choice: Choice, *, cluster_id: str, name: str) -> dict[str, object]:
    """Return the content of node.json, see `hybrid.node.orders`."""
    environment = ray_node_environment(plan) | {
        # Unless told so, Ray 2.60 refuses another patch version of Python too.
        "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL": "minor",
        "CUDA_VISIBLE_DEVICES": choice.uuids or None,
        **_mps_environment(plan, choice),
    }
    return {
        "id": name,
        "cluster_id": cluster_id,
        "role": "host",
        "command": ray_node_command(plan),
        "env": environment,
        "temp_dir": plan.temp_dir,
        "mps": choice.mps or None,
    }


def _mps_environment(plan: NodePlan, choice: Choice) -> dict[str, str | None]:
    """Return what MPS and the programs that use it must agree on, or what takes another's away."""
    if not choice.mps:
        return {"CUDA_MPS_PIPE_DIRECTORY": None, "CUDA_MPS_LOG_DIRECTORY": None}
    folder = f"{plan.temp_dir}/mps"
    return {
        "CUDA_MPS_PIPE_DIRECTORY": folder,
        "CUDA_MPS_LOG_DIRECTORY": folder,
        # What one program may take of a GPU's processors, unless it asks for less itself.
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{100 / choice.mps_clients:.4g}",
    }


def _is_about_gpus(resource: str) -> bool:
    return resource == "GPU" or resource.startswith("accelerator_type:")

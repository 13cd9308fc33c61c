"""What starts Ray on a node: the command as a list of words, and its environment.

Each option is one word `--name=value`, no shell reads it, and `core.nodeplan` checks every
value, so nothing in a name or a label can become another option.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping

from pydantic import ValidationError

from hybrid.core.models import LaunchSpec, RayHealth, RayOptions, Shape
from hybrid.core.nodeplan import AUTO, OFF, HeadPlan, NodePlan, Preflight, StartPlan

__all__ = [
    "HeadPlan",
    "NodePlan",
    "Preflight",
    "RayHealth",
    "RayOptions",
    "ray_drain_command",
    "ray_head_command",
    "ray_head_environment",
    "ray_node_command",
    "ray_node_environment",
    "ray_node_expected",
    "rented_node",
    "shell_report",
]


def rented_node(
    spec: LaunchSpec,
    shape: Shape,
    *,
    python: str,
    temp_dir: str,
    preflight: Preflight | None = None,
) -> NodePlan:
    """Return the plan of a rented machine's node: what its launch says, on that machine.

    Args:
        spec: Whom it belongs to, and how Ray runs in that cluster.
        shape: Ray resources it brings.
        python: Interpreter of the machine.
        temp_dir: Ray's folder there.
        preflight: Whether its GPUs are numbers only.

    Raises:
        ValueError: A value cannot be part of a node's start; the message does not quote the rest.
    """
    try:
        return NodePlan(
            **dict(spec.ray),
            python=python,
            temp_dir=temp_dir,
            resources=shape,
            labels={key: value for key, value in spec.labels.items() if value},
            instance_id=spec.instance_id,
            head_address=spec.head_address,
            are_gpus_logical=preflight is not None and preflight.logical_gpus,
        )
    except ValidationError as err:
        # Its own words quote all of the input.
        raise ValueError("; ".join(item["msg"] for item in err.errors(include_url=False))) from err


def shell_report(spec: LaunchSpec, *, join_token: str, python: str, output: str) -> str:
    """Return a shell function `tell` that reports an interpreter that runs no node program.

    Such a machine would be paid until its join is overdue, and nobody would know why. Needs curl,
    base64 and tr. What is in it is base64, so that nothing of it means anything to a shell.

    Args:
        spec: Whom it belongs to, and who is told.
        join_token: Proves who tells.
        python: The interpreter.
        output: File with what it said; a plain path.
    """
    said = (
        f"{python} of this image does not run this program: use an image that has both, or set "
        "the provider's `python` to where they are; its last words: "
    )
    facts = {"instance_id": spec.instance_id, "join_token": join_token, "phase": "failed"}
    # Up to the open quote of its last value, which the machine completes.
    report = json.dumps(facts | {"problem": said}).removesuffix('"}')
    url = f"{spec.controller_url.rstrip('/')}/api/v1/join/report"
    return _TELL.format(report=_base64(report), url=_base64(url), output=output)


def ray_head_command(plan: HeadPlan) -> list[str]:
    """Return the `ray start` command of the head.

    `--no-monitor` (hidden in Ray 2.60) keeps Ray's autoscaler away: it would adopt our nodes.
    """
    has_client = plan.client_port != OFF
    client = [f"--ray-client-server-port={_port(plan.client_port, 'client')}"] if has_client else []
    return [
        *(_start(plan.python) if has_client else _start_without_client(plan.python)),
        "--head",
        f"--port={_port(plan.port, 'gcs')}",
        f"--dashboard-host={plan.dashboard_host}",
        f"--dashboard-port={_port(plan.dashboard_port, 'dashboard')}",
        *client,
        "--no-monitor",
        *_common(plan),
    ]


def ray_node_command(plan: NodePlan) -> list[str]:
    """Return the `ray start` command of a node."""
    return [
        *_start(plan.python),
        f"--address={plan.head_address}",
        # One per machine, and the head's machine has one; saves 100 MB on each node.
        "--include-log-monitor=false",
        *_common(plan),
    ]


def ray_drain_command(plan: NodePlan) -> list[str]:
    """Return the command by which a node asks Ray to empty it before its cloud takes it back.

    The node program fills in `{node_id}`, `{message}` and `{left_s}`. Hidden in Ray 2.60 and not
    stable; it is the way that needs nothing but Ray.
    """
    return [
        *_ray(plan.python),
        "drain-node",
        f"--address={plan.head_address}",
        "--node-id={node_id}",
        "--reason=DRAIN_NODE_REASON_PREEMPTION",
        "--reason-message={message}",
        "--deadline-remaining-seconds={left_s}",
    ]


def ray_node_expected(
    plan: NodePlan, spec: LaunchSpec, preflight: Preflight | None = None
) -> dict[str, object]:
    """Return what a rented node must find on its machine before it joins.

    See `hybrid.node.preflight`, which reads it.

    Args:
        plan: Its GPUs must be there, unless they are logical.
        spec: Has the versions of the cluster; one that is `""` is not looked at.
        preflight: What the configuration says about it.

    Raises:
        ValueError: A version is none.
    """
    preflight = preflight or Preflight()
    version, python = spec.ray_version, ".".join(spec.python_version.split(".")[:2])
    for text in (version, python):
        if not _VERSION.fullmatch(text):
            raise ValueError(f"{text!r} is not a version")
    expected: dict[str, object] = {"ray": version, "python": python}
    if not plan.are_gpus_logical and (gpu_count := int(plan.resources.get("GPU", 0))):
        expected["gpus"] = gpu_count
        if preflight.min_driver:
            expected["min_driver"] = preflight.min_driver
        if preflight.min_cuda:
            expected["min_cuda"] = preflight.min_cuda
    if preflight.install_ray and version:
        install = [plan.python, "-P", "-m", "pip", "install", "--no-input"]
        expected["install"] = [*install, f"ray[default]=={version}"]
    return expected


def ray_head_environment(plan: HeadPlan) -> dict[str, str | None]:
    """Return the environment of the head, without secrets; `None` takes a variable away."""
    # Ray fails a job that has waited 15 minutes for resources. How long work may wait is the
    # policy's business here, and a queue may be longer than that.
    return _environment(plan) | {"RAY_JOB_START_TIMEOUT_SECONDS": str(_JOB_START_LIMIT_S)}


def ray_node_environment(plan: NodePlan) -> dict[str, str | None]:
    """Return the environment of a node, without secrets; `None` takes a variable away."""
    env = _environment(plan)
    if plan.instance_id:
        env["RAY_CLOUD_INSTANCE_ID"] = plan.instance_id
    if plan.are_gpus_logical:
        # Ray refuses more GPUs than this names.
        env["CUDA_VISIBLE_DEVICES"] = None
    return env


_VERSION = re.compile(r"([0-9][0-9A-Za-z.+!-]{0,39})?")
_JOB_START_LIMIT_S = 365 * 24 * 3600


_TELL = """\
tell() {{
  words=$(tail -c 300 {output} | tr -c 'A-Za-z0-9 ._:/,()=-' ' ')
  {{ printf %s {report} | base64 -d; printf '%s"}}' "$words"; }} |
    curl -sf -m 10 --retry 9 --retry-delay 5 --retry-connrefused -o /dev/null \\
      -H 'Content-Type: application/json' -d @- "$(printf %s {url} | base64 -d)"
}}
"""


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()


def _ray(python: str) -> list[str]:
    # -P: a file of the current folder must not stand in for a module. The console script
    # `ray` does the same work in the same time, but is not always beside the interpreter.
    return [python, "-P", "-m", "ray.scripts.scripts"]


def _start(python: str) -> list[str]:
    return [*_ray(python), "start"]


# Ray 2.60 has no option for it: a head has a client server whenever grpc can be imported. Its
# start hook can take the port away before anything runs.
_WITHOUT_CLIENT = """\
import os, ray.scripts.scripts
def without_client(params, head):
    del os.environ["RAY_START_HOOK"]
    params.ray_client_server_port = None
os.environ["RAY_START_HOOK"] = "__main__.without_client"
ray.scripts.scripts.main()
"""


def _start_without_client(python: str) -> list[str]:
    return [python, "-P", "-c", _WITHOUT_CLIENT, "start"]


def _common(plan: StartPlan) -> list[str]:
    options: dict[str, object] = {"temp-dir": plan.temp_dir, "disable-usage-stats": None}
    if plan.node_ip:
        options["node-ip-address"] = plan.node_ip
    if plan.labels:
        options["labels"] = ",".join(f"{key}={value}" for key, value in plan.labels.items())
    if plan.object_store_bytes is not None:
        options["object-store-memory"] = plan.object_store_bytes
    options |= _resource_options(plan.resources)
    options |= _CHOSEN_PORTS
    first, last = plan.worker_ports or (0, 0)
    options |= {"min-worker-port": first, "max-worker-port": last}
    return [f"--{k}" if v is None else f"--{k}={v}" for k, v in options.items()]


# Two raylets that choose random ports at the same moment collide (measured on Ray 2.60), and a
# firewall between nodes can have a rule for a known range.
_CHOSEN_PORTS: Mapping[str, object] = {
    "node-manager-port": "{port:node_manager}",
    "object-manager-port": "{port:object_manager}",
    "dashboard-agent-listen-port": "{port:agent_http}",
    "dashboard-agent-grpc-port": "{port:agent_grpc}",
    "runtime-env-agent-port": "{port:runtime_env}",
    "metrics-export-port": "{port:metrics}",
}


def _resource_options(resources: Shape) -> dict[str, object]:
    named = {"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory"}
    options: dict[str, object] = {
        option: int(resources[name]) for name, option in named.items() if name in resources
    }
    options.setdefault("num-gpus", 0)
    others = {name: amount for name, amount in resources.items() if name not in named}
    if others:
        options["resources"] = json.dumps(others)
    return options


def _port(port: int | str, name: str) -> str:
    return f"{{port:{name}}}" if port == AUTO else str(port)


def _environment(plan: StartPlan) -> dict[str, str | None]:
    health = plan.health
    return {
        # Explicit, because Ray switches by itself when it finds a token somewhere.
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_max_resource_shapes_per_load_report": str(plan.max_shapes),
        "RAY_health_check_initial_delay_ms": _ms(health.initial_delay_s),
        "RAY_health_check_period_ms": _ms(health.period_s),
        "RAY_health_check_timeout_ms": _ms(health.timeout_s),
        "RAY_health_check_failure_threshold": str(health.failure_threshold),
        "RAY_grpc_client_keepalive_time_ms": _ms(health.keepalive_time_s),
        "RAY_grpc_client_keepalive_timeout_ms": _ms(health.keepalive_timeout_s),
    }


def _ms(duration_s: float) -> str:
    return str(max(1, round(duration_s * 1000)))

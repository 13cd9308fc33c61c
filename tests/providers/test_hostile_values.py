"""All scripts of all clouds, with values that try to be commands, run by a real shell.

A value is either refused before any call, or it arrives on the machine as it was: nothing of it
is executed, no other file appears, and the script stays small.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import LaunchSpec, RayHealth, RayOptions
from hybrid.node.orders import Orders, parse
from hybrid.node.ports import places
from hybrid.settings.machines import RAY_NODE_PORTS
from providers.aws.userdata import user_data
from providers.baidu.userdata import script as baidu_script
from providers.gcp.userdata import gang_script, startup_script
from tests.providers.test_gcp_userdata import an_offer

pytestmark = pytest.mark.slow

LIMIT_BYTES = 16_384
SHAPE = {"CPU": 8, "GPU": 1, "memory": 2**34}
CALM = {
    "cluster_id": "c-1",
    "instance_id": "i-1",
    "head_address": "10.0.0.1:6379",
    "controller_url": "http://10.0.0.1:8700",
    "ray_version": "2.60.0",
    "python_version": "3.11",
}
FIELDS = (*CALM, "label key", "label value", "join_token", "python")

_RUN = "touch pwned"
HOSTILE = (
    f"$({_RUN})",
    f"`{_RUN}`",
    f"; {_RUN};",
    f"& {_RUN} &",
    f"| {_RUN} |",
    f"|| {_RUN}",
    f"'; {_RUN}; '",
    f"'\"'; {_RUN}; '\"'",
    f'"; {_RUN}; "',
    f"\n{_RUN}\n",
    f"\r\n{_RUN}\r\n",
    f"\nEND\n{_RUN}\n",
    f"\nHYBRID_END\n{_RUN}\n",
    f"HYBRID_END\n{_RUN}\n",
    f'"}}\nHYBRID_END\n{_RUN}\n{{"',
    f'", "command": ["{_RUN}"], "x": "',
    f"'$({_RUN})'",
    f"$'\\n'{_RUN}",
    f"<({_RUN})",
    f"> pwned <<< x",  # noqa: F541
    f"${{x:-$({_RUN})}}",
    f"$(( $({_RUN}) ))",
    f"\\$({_RUN})",
    f"\\'; {_RUN} #",
    f"*) {_RUN};;",
    f"i-1) {_RUN};; x",
    f"*/../../pwned",  # noqa: F541
    f"-c {_RUN}",
    f"--option=$({_RUN})",
    "{folder} {0} {} %s %(x)s $folder ${units} $$ $$(touch pwned)",
    "//x/&/$id/",
    "\x1b]0;x\x07\x7f\x01",
    "步骤 \u202e \u2028 é",
    "\ud800",
    "\0",
    "~",
    "!!",
    "",
)


@dataclass(frozen=True)
class Values:
    """What goes into a script."""

    spec: LaunchSpec
    join_token: str
    python: str


def values(python: str, changes: Mapping[str, str]) -> Values:
    labels = {"site": "cloud", changes.get("label key", "team"): changes.get("label value", "a")}
    fields = {**CALM, **{k: v for k, v in changes.items() if k in CALM}}
    spec = LaunchSpec(epoch=1, labels=labels, expires_at_s=4_000_000_000.0, **fields)
    return Values(spec, changes.get("join_token", "join-once"), changes.get("python", python))


# --- the scripts, each with its own place on the machine -----------------------------------------


def aws(given: Values, root: Path) -> str:
    folder = str(root / "node")
    units = str(root / "units")
    return user_data(
        given.spec,
        SHAPE,
        join_token=given.join_token,
        python=given.python,
        is_spot=True,
        folder=folder,
        units=units,
    )


def gcp(given: Values, root: Path) -> str:
    return startup_script(
        an_offer(),
        given.spec,
        join_token=given.join_token,
        python=given.python,
        folder=str(root / "node"),
        look_s=5,
    )


def gcp_gang(given: Values, root: Path) -> str:
    name = given.spec.instance_id
    return gang_script(
        an_offer(),
        given.spec.model_copy(update={"gang": (name, "i-other")}),
        names={name: "machine-1", "i-other": "machine-2"},
        join_tokens={name: given.join_token, "i-other": given.join_token},
        python=given.python,
        folder=str(root / "node"),
        look_s=5,
        pause_s=0.01,
    )


def baidu(given: Values, root: Path) -> str:
    text = baidu_script(given.spec, SHAPE, python=given.python, join_token=given.join_token)
    return text.replace("/var/lib/hybrid/node", str(root / "node"))


Script = Callable[[Values, Path], str]
SCRIPTS: Mapping[str, Script] = {"aws": aws, "gcp": gcp, "gcp_gang": gcp_gang, "baidu": baidu}


class Machine:
    """A folder with stand-ins for all that scripts call; each run is in a new one below."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.bin = path / "bin"
        self.bin.mkdir()
        for name in ("python", "systemctl", "shutdown"):
            self._command(name, "exit 0")
        self._command("curl", '[[ "${!#}" == */instance/name ]] && printf %s machine-1')
        self._command("poweroff", "kill 0")
        self.python = str(self.bin / "python")
        self._calm_files: set[str] = set()

    def _command(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    def boot(self, script: Script, changes: Mapping[str, str]) -> Path | None:
        """Run the script; return its folder, or `None` when a value was refused before."""
        self.count += 1
        root = self.path / f"root-{self.count}"
        (root / "units").mkdir(parents=True)
        given = values(self.python, changes)
        try:
            text = script(given, root)
            size = len(text.encode())
        except ValueError:
            return None
        assert size <= LIMIT_BYTES
        file = root / "script"
        file.write_text(text, newline="")
        subprocess.run(
            ["bash", str(file)],
            cwd=root,
            env={"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(root)},
            start_new_session=True,  # poweroff ends the whole group
            capture_output=True,
            timeout=30,
        )
        return root

    def calm_files(self, script: Script) -> set[str]:
        """Return the files that there are after a script with calm values."""
        if not self._calm_files:
            root = self.boot(script, {})
            assert root is not None
            self._calm_files = files(root)
        return self._calm_files


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def files(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*")}


def orders_of(root: Path) -> Orders | None:
    """Return the orders; `None` when the node's own program refuses them."""
    content = json.loads((root / "node" / "node.json").read_text())
    try:
        return parse(content)
    except ValueError:
        return None


def assert_harmless(machine: Machine, cloud: str, changes: Mapping[str, str]) -> bool:
    """Assert that a value is a value; return whether it reached the machine."""
    root = machine.boot(SCRIPTS[cloud], changes)
    assert not list(machine.path.rglob("pwned")), changes
    if root is None:
        return False
    given = values(machine.python, changes)
    assert files(root) == machine.calm_files(SCRIPTS[cloud]), changes
    token = (root / "node" / "join_token").read_bytes().decode()
    assert token == given.join_token, changes
    orders = orders_of(root)
    if orders is None:
        return False
    assert orders.join is not None
    told = (orders.id, orders.cluster_id, orders.join.url, orders.join.instance_id)
    spec = given.spec
    wanted = (spec.instance_id, spec.cluster_id, spec.controller_url, spec.instance_id)
    assert told == wanted, changes
    assert orders.env["RAY_CLOUD_INSTANCE_ID"] == spec.instance_id
    assert f"--address={spec.head_address}" in orders.command
    assert orders.command[:4] == (given.python, "-P", "-m", "ray.scripts.scripts"), changes
    assert orders.expected is not None
    assert (orders.expected.ray, orders.expected.gpus) == (spec.ray_version, 1)
    return True


@pytest.mark.parametrize("cloud", SCRIPTS)
def test_a_calm_script_arrives(machine: Machine, cloud: str) -> None:
    assert assert_harmless(machine, cloud, {})


@pytest.mark.parametrize("cloud", SCRIPTS)
def test_how_ray_runs_in_the_cluster_reaches_the_machine(machine: Machine, cloud: str) -> None:
    ray = RayOptions(
        object_store_bytes=3 * 2**30,
        health=RayHealth(period_s=7.0, failure_threshold=9),
        worker_ports=(30_000, 31_999),
        max_shapes=77,
    )

    def script(given: Values, root: Path) -> str:
        changed = replace(given, spec=given.spec.model_copy(update={"ray": ray}))
        return SCRIPTS[cloud](changed, root)

    root = machine.boot(script, {})

    assert root is not None
    orders = orders_of(root)
    assert orders is not None
    assert f"--object-store-memory={3 * 2**30}" in orders.command
    assert "--min-worker-port=30000" in orders.command
    assert "--max-worker-port=31999" in orders.command
    # Whoever guards the network between home and the cloud knows these ports too.
    assert places(orders.command)[:2] == ["node_manager", "object_manager"]
    assert orders.ports == (RAY_NODE_PORTS.low, RAY_NODE_PORTS.high)
    assert orders.env["RAY_max_resource_shapes_per_load_report"] == "77"
    assert orders.env["RAY_health_check_period_ms"] == "7000"
    assert orders.env["RAY_health_check_failure_threshold"] == "9"


@pytest.mark.parametrize("cloud", SCRIPTS)
@pytest.mark.parametrize("field", FIELDS)
def test_no_value_is_ever_a_command(machine: Machine, cloud: str, field: str) -> None:
    calm = CALM.get(field, "")
    for hostile in HOSTILE:
        assert_harmless(machine, cloud, {field: calm + hostile})


@pytest.mark.parametrize("cloud", SCRIPTS)
def test_what_may_be_anything_arrives_as_it_is(machine: Machine, cloud: str) -> None:
    """The controller's address is the one value that no rule restricts."""
    arrived = [t for t in HOSTILE if assert_harmless(machine, cloud, {"controller_url": t + "h"})]

    assert len(arrived) >= len(HOSTILE) - 2  # a lone surrogate and a zero byte cannot


@pytest.mark.parametrize("cloud", SCRIPTS)
@pytest.mark.parametrize("seed", range(6))
def test_no_mixture_of_them_is_ever_a_command(machine: Machine, cloud: str, seed: int) -> None:
    rng = random.Random(seed)
    parts: Sequence[str] = [*HOSTILE, *"'\"`$(){}[]<>|&;\\\n\r\t #~!*?=%^", "END", "HYBRID_END"]
    for _ in range(4):
        changes: dict[str, Any] = {
            field: "".join(rng.choices(parts, k=rng.randint(1, 8)))
            for field in ("controller_url", "cluster_id", "join_token", "instance_id")
            if rng.random() < 0.6
        }
        assert_harmless(machine, cloud, changes)


@pytest.mark.parametrize("cloud", SCRIPTS)
def test_what_is_too_long_is_refused(machine: Machine, cloud: str) -> None:
    assert machine.boot(SCRIPTS[cloud], {"controller_url": "x" * LIMIT_BYTES}) is None


@pytest.mark.parametrize("cloud", SCRIPTS)
@pytest.mark.parametrize("field", ["label key", "label value", "head_address", "ray_version"])
def test_what_ray_or_pip_would_read_is_refused(machine: Machine, cloud: str, field: str) -> None:
    for hostile in HOSTILE:
        if hostile:
            assert machine.boot(SCRIPTS[cloud], {field: hostile}) is None, hostile

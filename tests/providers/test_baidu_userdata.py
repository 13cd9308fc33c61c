"""The script that an instance of Baidu AI Cloud runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.models import LaunchSpec
from hybrid.node.orders import Role, parse
from providers.baidu.userdata import MAX_BYTES, script
from tests.node.controller import FakeController
from tests.providers.contract import make_spec


class _Owner:
    cluster_id = "c-1"
    controller_url = "https://10.0.0.1:8443/$(touch /tmp/x)`id`'\";#"


SHAPE = {"CPU": 12.0, "memory": 2.0**34, "GPU": 1.0, "accelerator_type:P40": 1.0}


def node_spec(**changes: Any) -> LaunchSpec:
    return make_spec(_Owner()).model_copy(update=changes)


def text_of(spec: LaunchSpec, *, join_token: str = "join-once") -> str:
    return script(spec, SHAPE, python="/opt/hybrid/bin/python", join_token=join_token)


def test_the_script_writes_the_orders_and_the_token_and_starts_the_node(tmp_path: Path) -> None:
    """Run by a real shell; what is odd in a value means nothing to it."""
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {said}\n')
    python.chmod(0o700)
    folder, spec = tmp_path / "node", node_spec()
    text = script(spec, SHAPE, python=str(python), join_token="a/b+c==")

    done = subprocess.run(
        ["sh", "-c", text.replace("/var/lib/hybrid/node", str(folder))],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert said.read_text() == f"-P -m hybrid.node start {folder} "
    assert (folder / "join_token").read_text() == "a/b+c=="
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    orders = parse(json.loads((folder / "node.json").read_bytes()))
    assert (orders.id, orders.cluster_id, orders.role) == (spec.instance_id, "c-1", Role.INSTANCE)
    assert orders.join is not None
    assert orders.join.url == _Owner.controller_url
    assert {"--num-cpus=12", "--num-gpus=1"} <= set(orders.command)
    assert orders.env["RAY_CLOUD_INSTANCE_ID"] == spec.instance_id
    assert orders.lease_file is None  # the release time is the lease


def test_a_python_that_has_no_such_program_is_told_at_once(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"no module named 'hybrid' \\$(id) \\\\\" >&2; exit 1\n")
    python.chmod(0o700)
    with FakeController() as controller:
        spec = node_spec(controller_url=controller.url)
        text = script(spec, SHAPE, python=str(python), join_token="a/b+c==")
        folder = tmp_path / "node"
        subprocess.run(["sh", "-c", text.replace("/var/lib/hybrid/node", str(folder))], check=True)

        ((phase, problem),) = controller.reports

    assert phase == "failed"
    assert problem.startswith(f"{python} of this image does not run this program: use")
    assert "no module named  hybrid" in problem


def test_the_script_is_small_plain_and_always_the_same() -> None:
    spec = node_spec()

    assert text_of(spec) == text_of(spec)
    assert text_of(spec).isascii()
    assert len(text_of(spec)) < MAX_BYTES / 4


def test_a_script_that_is_too_long_is_refused() -> None:
    labels = {f"label-{n}": "x" * 60 for n in range(200)}

    with pytest.raises(ValueError, match="at most 16384 fit"):
        text_of(node_spec(labels=labels))


@pytest.mark.parametrize("token", ["", "a b", "a\nEND\nreboot", "'$(id)'", "x" * 513])
def test_an_odd_join_token_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="join token") as caught:
        text_of(node_spec(), join_token=token)

    assert not token or token not in str(caught.value)


@pytest.mark.parametrize(
    "changes", [{"labels": {"a": "b c"}}, {"head_address": "host;reboot"}], ids=["label", "head"]
)
def test_an_odd_value_for_ray_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="write"):
        text_of(node_spec(**changes))

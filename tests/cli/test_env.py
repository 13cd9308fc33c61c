"""`hybrid env`: Ray's own tools find the cluster."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.api import canned
from tests.cli.conftest import Lab, Run
from tests.running import TOKEN


def test_env_prints_what_a_shell_takes_in_and_takes_back(lab: Lab, run: Run) -> None:
    (lab.state_dir / "ray_token").write_text("secret")
    script = (
        f"{run('env').out}env | grep ^RAY_ | sort\n{run('env', '--unset').out}env | grep -c ^RAY_"
    )

    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True)

    assert done.stdout.splitlines() == [
        "RAY_ADDRESS=127.0.0.1:6379",
        "RAY_API_SERVER_ADDRESS=http://127.0.0.1:8265",
        "RAY_AUTH_MODE=token",
        f"RAY_AUTH_TOKEN_PATH={lab.state_dir}/ray_token",
        "0",
    ]
    assert "secret" not in run("env").out


def test_env_json_is_one_object(lab: Lab, run: Run) -> None:
    (lab.state_dir / "ray_token").write_text("secret")

    shown = json.loads(run("env", "--json").out)

    assert shown["RAY_ADDRESS"] == "127.0.0.1:6379"
    assert len(shown) == 4


def test_a_head_that_is_not_there_yet_is_said(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = canned.cluster("lab").model_copy(update={"head_address": ""})
    monkeypatch.setattr(canned, "cluster", lambda _name: starting)

    shown = run("env")

    assert (shown.code, shown.out) == (5, "")
    assert "Ray's head has not started yet" in shown.err


@pytest.mark.parametrize("is_far", [False, True])
def test_without_the_token_nothing_is_printed(
    lab: Lab, run: Run, monkeypatch: pytest.MonkeyPatch, is_far: bool
) -> None:
    if is_far:
        monkeypatch.setenv("HYBRID_ADDRESS", lab.server.url)
        monkeypatch.setenv("HYBRID_TOKEN", TOKEN)

    shown = run("env")

    assert (shown.code, shown.out) == (2, "")
    assert "run this on the controller's machine" in shown.err

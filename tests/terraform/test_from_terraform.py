"""`--from-terraform`: the outputs of a real root module, laid over a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.rig import Rig

_AWS = """{
    provider = "aws"
    regions = { us-east-1 = {
      image = "ami-0123456789abcdef0"
      subnets = { us-east-1a = "subnet-0123456789abcdef0" }
      security_groups = ["sg-0123456789abcdef0"]
      key_name = null
    } }
    pools = [{ infra = "aws/us-east-1/us-east-1a", instance_type = "g5.12xlarge", max_nodes = 2,
               usd_per_hour = 5.7, use_spot = false }]
  }"""
_FILE = """
name: outputs
burst:
  queue:
    max_wait: 7m
budget:
  usd_per_day: 100
"""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    folder = tmp_path / "ops"
    folder.mkdir()
    (tmp_path / "hybrid.yaml").write_text(_FILE)
    return Rig(folder)


def _hybrid(rig: Rig, *words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hybrid.cli.main", *words],
        cwd=rig.folder.parent,
        env={**os.environ, "HYBRID_HOME": str(rig.folder.parent / "home"), **env},
        input=stdin,
        capture_output=True,
        text=True,
    )


def _applied(rig: Rig, outputs: str) -> None:
    rig.write(outputs)
    rig.apply()


def _origins(rig: Rig, *more: str) -> dict[str, tuple[Any, str]]:
    words = ("config", "show", "hybrid.yaml", "--origins", "--json", *more)
    done = _hybrid(rig, *words)
    assert done.returncode == 0, done.stderr
    return {row["path"]: (row["value"], row["origin"]) for row in json.loads(done.stdout)}


def _refused(rig: Rig, *words: str, stdin: str = "") -> str:
    done = _hybrid(rig, "config", "validate", "hybrid.yaml", *words, stdin=stdin)
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


def test_outputs_lie_over_the_file_each_value_with_its_origin(rig: Rig) -> None:
    _applied(rig, f'output "cloud" {{ value = {_AWS} }}\noutput "other" {{ value = 3 }}')

    shown = _origins(rig, "--from-terraform", "ops")

    source = f"output cloud of {rig.folder}"
    assert shown["providers.aws.regions.us-east-1.image"] == ("ami-0123456789abcdef0", source)
    assert shown["clouds.ordered[0].instance_type"] == ("g5.12xlarge", source)
    assert shown["clouds.ordered[0].max_nodes"] == ("2", source)
    assert shown["burst.queue.max_wait"][1] == "hybrid.yaml:5"
    assert shown["idle.after"][1] == "default"


def test_outputs_may_be_piped(rig: Rig) -> None:
    _applied(rig, f'output "cloud" {{ value = {_AWS} }}')
    text = rig.ok("output", "-json")

    done = _hybrid(
        rig, "config", "show", "hybrid.yaml", "--json", "--from-terraform", "-", stdin=text
    )

    assert json.loads(done.stdout)["clouds"]["ordered"][0]["infra"] == "aws/us-east-1/us-east-1a"


def test_a_variable_wins_over_an_output(rig: Rig) -> None:
    _applied(rig, f'output "cloud" {{ value = {_AWS} }}')

    done = _hybrid(
        rig,
        "config",
        "show",
        "hybrid.yaml",
        "--json",
        "--from-terraform",
        "ops",
        HYBRID_BURST__QUEUE__MAX_WAIT="9m",
    )

    assert json.loads(done.stdout)["burst"]["queue"]["max_wait"] == "9m"


def test_a_value_that_is_refused_names_its_output(rig: Rig) -> None:
    _applied(rig, f'output "cloud" {{ value = {_AWS.replace("max_nodes = 2", "max_nodes = -2")} }}')

    said = _refused(rig, "--from-terraform", "ops")

    assert f"output cloud of {rig.folder}: clouds.ordered[0].max_nodes:" in said


def test_an_adapters_refusal_names_its_output(rig: Rig) -> None:
    _applied(rig, f'output "cloud" {{ value = {_AWS.replace("key_name = null", "flavour = 1")} }}')

    said = _refused(rig, "--from-terraform", "ops")

    assert f"output cloud of {rig.folder}: providers.aws" in said
    assert "flavour" in said


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ('output "x" { value = 1 }', "no output is a `hybrid_provider` (outputs: x); add"),
        ("", "no output is a `hybrid_provider` (outputs: none); add"),
        ('output "x" { value = { provider = "azure" } }', "hybrid has no such; it has aws"),
        (
            f'output "a" {{ value = {_AWS} }}\noutput "b" {{ value = {_AWS} }}',
            "two modules of one cluster need pools of their own",
        ),
        (
            f'output "a" {{ value = {_AWS} }}\n'
            f'output "b" {{ value = {_AWS.replace("ami-0", "ami-f")} }}',
            "give each module its own region",
        ),
    ],
    ids=["none-for-us", "no-outputs", "unknown-cloud", "twice", "two-that-disagree"],
)
def test_outputs_that_do_not_fit_are_refused(rig: Rig, outputs: str, said: str) -> None:
    _applied(rig, outputs or "locals { a = 1 }")

    assert said in _refused(rig, "--from-terraform", "ops")


def test_a_folder_that_is_not_there_is_refused(rig: Rig) -> None:
    assert "there is no such folder; name the one" in _refused(rig, "--from-terraform", "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}'])
def test_standard_input_that_is_something_else_is_refused(rig: Rig, text: str) -> None:
    said = _refused(rig, "--from-terraform", "-", stdin=text)

    assert "standard input: this is not what `terraform output -json` prints" in said


def test_what_is_kept_is_used_by_every_command_until_it_is_forgotten(rig: Rig) -> None:
    from hybrid.settings import Layer
    from hybrid.settings.layers import store

    state_dir = rig.folder.parent / "home" / "outputs"
    store(
        state_dir,
        Layer("terraform-cloud", "output cloud of x", {"burst": {"queue": {"max_wait": "3m"}}}),
    )

    assert _origins(rig)["burst.queue.max_wait"] == ("3m", "output cloud of x")
    assert _origins(rig, "--from-terraform", "none")["burst.queue.max_wait"][1] == "hybrid.yaml:5"


def test_a_layer_may_not_touch_the_head(rig: Rig) -> None:
    from hybrid.core.errors import ConfigError
    from hybrid.settings import Layer
    from hybrid.settings.layers import store

    with pytest.raises(ConfigError, match="it may not set 'head'"):
        store(rig.folder, Layer("x", "output x", {"head": {"cpus": 1}}))

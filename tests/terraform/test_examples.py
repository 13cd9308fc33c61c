"""The examples, as they stand: planned, and the one with all clouds applied and taken by hybrid."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.emulators.aws import AwsEmulator
from tests.terraform.account import CREDENTIALS
from tests.terraform.clouds import baidu
from tests.terraform.workspace import ROOT, TERRAFORM, Mirror, Workspace

pytestmark = pytest.mark.slow

CLOUDS = ("aws-burst", "gcp-burst", "baidu-burst", "three-clouds")
EXAMPLES = TERRAFORM / "examples"


@pytest.fixture(scope="module")
def emulator() -> Iterator[AwsEmulator]:
    emulator = AwsEmulator()
    yield emulator
    emulator.stop()


def workspace(name: str, mirror: Mirror, folder: Path, emulator: AwsEmulator) -> Workspace:
    """Return an example, initialised, with the values that come with it."""
    work = Workspace.of(folder, mirror, f"examples/{name}")
    shutil.copyfile(work.folder / "terraform.tfvars.example", work.folder / "terraform.tfvars")
    work.env.update({**baidu.KEYS, **CREDENTIALS, "AWS_ENDPOINT_URL": emulator.url})
    return work.init()


@pytest.mark.parametrize("name", CLOUDS)
def test_an_example_is_whole(name: str) -> None:
    folder = EXAMPLES / name
    files = {path.name for path in folder.iterdir()}

    assert files >= {"README.md", "backend.tf.example", "hybrid.yaml", "terraform.tfvars.example"}
    versions = re.findall(
        r'^\s+version = "(.*)"', (folder / "versions.tf").read_text(), re.MULTILINE
    )
    assert versions
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions), "pinned exactly"
    assert yaml.safe_load((folder / "hybrid.yaml").read_text())["name"] == name
    assert f'default     = "{name}"' in (folder / "variables.tf").read_text()
    assert not list(folder.glob("*.tfstate*")), "nobody's state belongs here"


@pytest.mark.parametrize("name", CLOUDS[:3])
def test_an_example_plans_with_the_values_that_come_with_it(
    name: str, mirror: Mirror, emulator: AwsEmulator, tmp_path: Path
) -> None:
    work = workspace(name, mirror, tmp_path, emulator)
    for backend in work.folder.glob("backend.tf.example"):
        shutil.copyfile(backend, work.folder / "backend.tf")
    assert work.validate() == []
    (work.folder / "backend.tf").unlink()

    done = work.plan()

    assert (done.code, done.errors()) == (2, [])


def test_three_clouds_are_made_taken_by_hybrid_and_leave_nothing(
    mirror: Mirror, emulator: AwsEmulator, tmp_path: Path
) -> None:
    work = workspace("three-clouds", mirror, tmp_path, emulator)

    work.apply().ok()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **work.env}
    checked, shown = (
        subprocess.run(
            [sys.executable, "-m", "hybrid.cli.main", "config", *words, "--from-terraform", "."],
            cwd=work.folder,
            env=env,
            capture_output=True,
            text=True,
        )
        for words in (["validate", "hybrid.yaml"], ["show", "hybrid.yaml", "--json"])
    )
    ended = work.destroy(None, "-refresh=false")

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert shown.returncode == 0, shown.stderr
    pools = [pool["infra"] for pool in json.loads(shown.stdout)["clouds"]["ordered"]]
    assert {infra.partition("/")[0] for infra in pools} == {"aws", "gcp", "baidu"}
    assert (ended.code, work.in_state()) == (0, [])

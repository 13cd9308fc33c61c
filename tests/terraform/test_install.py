"""`hybrid terraform install`: what it writes is what the real `terraform init` takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid
from hybrid.terraform.install import PLATFORMS
from tests.terraform.rig import Rig, this_platform

_ROOT = """
terraform {
  required_providers {
    hybrid = { source = "hybrid-burst/hybrid" }
  }
}
data "hybrid_offers" "a" {
  limit = 1
}
"""


def _install(rig: Rig, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hybrid.cli.main", "terraform", "install", *words]
    return subprocess.run(command, cwd=rig.folder, env=rig.env, capture_output=True, text=True)


def _with_program(rig: Rig) -> None:
    """Put the program on PATH, and nothing else of this environment."""
    folder = rig.folder.parent / "bin"
    folder.mkdir()
    program = folder / "terraform-provider-hybrid"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hybrid.terraform.provider.main\n')
    program.chmod(0o755)
    rig.env["PATH"] = f"{folder}:{_bare_path(rig)}"


def _bare_path(rig: Rig) -> str:
    path = f"{Path(rig.program).parent}:/usr/bin:/bin"
    assert shutil.which("terraform-provider-hybrid", path=path) is None
    return path


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    folder = tmp_path / "ops"
    folder.mkdir()
    made = Rig(folder)
    made.write(_ROOT)
    return made


@pytest.mark.parametrize("where", [(), ("--dir", "terraform.d/plugins")], ids=["home", "root"])
def test_init_finds_it_and_one_hash_fits_all_platforms(rig: Rig, where: tuple[str, ...]) -> None:
    done = _install(rig, *where)

    assert done.returncode == 0, done.stderr
    assert "for 4 platforms" in done.stdout
    _with_program(rig)
    rig.ok("init")
    rig.apply()
    lock = (rig.folder / ".terraform.lock.hcl").read_text()
    assert lock.count('"h1:') == 1
    rig.ok("providers", "lock", f"-fs-mirror={_mirror(rig, where)}", *_each_platform())
    again = (rig.folder / ".terraform.lock.hcl").read_text()
    assert again.count('"h1:') == 1


def _mirror(rig: Rig, where: tuple[str, ...]) -> Path:
    return rig.folder / (where[1] if where else ".terraform.d/plugins")


def _each_platform() -> list[str]:
    assert this_platform() in PLATFORMS
    return [f"-platform={name}" for name in PLATFORMS]


def test_without_the_program_the_hint_says_what_to_do(rig: Rig) -> None:
    rig.env["PATH"] = _bare_path(rig)
    done = _install(rig)
    shim = next((rig.folder / ".terraform.d").rglob(f"*_v{hybrid.__version__}"))

    started = subprocess.run([shim], env=rig.env, capture_output=True, text=True)

    assert "terraform-provider-hybrid is not on PATH" in done.stderr
    assert started.returncode == 127
    assert "pip install 'hybrid-burst[terraform]'" in started.stderr


def test_a_folder_that_cannot_be_written_is_refused(rig: Rig) -> None:
    (rig.folder / "file").touch()

    done = _install(rig, "--dir", "file/plugins")

    assert done.returncode == 2
    assert "cannot be written (Not a directory); name another folder with --dir" in done.stderr

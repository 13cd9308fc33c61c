"""A root module in a folder of its own, and the real Terraform to run on it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lacking import lacking

ROOT = Path(__file__).parents[2]
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def terraform() -> str:
    """Return the path of Terraform; without it the test is skipped, and in CI it fails."""
    return shutil.which("terraform") or lacking("terraform 1.11 or newer is not on PATH")


def this_platform() -> str:
    """Return this machine's platform as Terraform names it, such as `linux_amd64`."""
    machine = platform.machine().lower()
    return f"{sys.platform}_{_ARCHITECTURES.get(machine, machine)}"


class Rig:
    """A root module, its state, and commands on it."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.program = terraform()
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("TF_")},
            "HOME": str(folder),  # neither the user's plugins nor its settings
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "PYTHONPATH": str(ROOT),
            **(env or {}),
        }

    def provide(self, name: str, module: str, version: str = "0.1.0") -> None:
        """Put a provider that is a Python module where `terraform init` finds it."""
        place = f"terraform.d/plugins/registry.terraform.io/hybrid-burst/{name}/{version}"
        folder = self.folder / place / this_platform()
        folder.mkdir(parents=True)
        shim = folder / f"terraform-provider-{name}_v{version}"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        shim.chmod(0o755)

    def write(self, text: str) -> None:
        """Replace the root module."""
        (self.folder / "main.tf").write_text(text)

    def run(self, *words: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command, whatever its exit code."""
        return subprocess.run(
            [self.program, *words, "-no-color"],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def ok(self, *words: str, timeout_s: float = 120.0) -> str:
        """Run a command that must succeed; return its output."""
        done = self.run(*words, timeout_s=timeout_s)
        assert done.returncode == 0, f"terraform {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def refused(self, *words: str) -> str:
        """Run a command that must fail; return what it said, on one line and without frames."""
        done = self.run(*words)
        assert done.returncode == 1, f"terraform {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        said = (done.stdout + done.stderr).replace("│", " ").replace("╷", " ").replace("╵", " ")
        return " ".join(said.split())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in a process group of its own, as a shell would."""
        return subprocess.Popen(
            [self.program, *words, "-no-color"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def apply(self) -> str:
        """Apply without asking."""
        return self.ok("apply", "-auto-approve")

    def is_in_line(self) -> bool:
        """Return whether a plan has nothing to do."""
        done = self.run("plan", "-detailed-exitcode")
        assert done.returncode in (0, 2), done.stdout + done.stderr
        return done.returncode == 0

    def state(self) -> dict[str, Any]:
        """Return the state file."""
        return dict(json.loads((self.folder / "terraform.tfstate").read_text()))

    def attributes(self, address: str) -> dict[str, Any]:
        """Return the values of one resource, such as `keeper_box.a`, from the state."""
        kind, name = address.split(".")
        for resource in self.state()["resources"]:
            if (resource["type"], resource["name"]) == (kind, name):
                return dict(resource["instances"][0]["attributes"])
        raise AssertionError(f"{address} is not in the state")

    def is_tainted(self, address: str) -> bool:
        """Return whether Terraform will replace a resource because its creation failed."""
        kind, name = address.split(".")
        return any(
            (resource["type"], resource["name"]) == (kind, name)
            and resource["instances"][0].get("status") == "tainted"
            for resource in self.state()["resources"]
        )

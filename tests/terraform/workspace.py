"""Terraform on a copy of a module, with stub providers and no network.

`Mirror` puts the stubs under the real providers' addresses, `Workspace` is a folder of HCL in
which the real `terraform` runs. What a run leaves (locks with the stubs' hashes, state) stays in
the copy, which the test's own temporary folder holds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lacking import lacking

ROOT = Path(__file__).parents[2]
TERRAFORM = ROOT / "terraform"
STUBS: Mapping[str, tuple[str, str]] = {
    "registry.terraform.io/hashicorp/aws": ("aws", "6.69.1"),
    "registry.terraform.io/hashicorp/google": ("google", "8.7.0"),
    "registry.terraform.io/baidubce/baiducloud": ("baiducloud", "1.23.5"),
}
"""Address of a provider -> name of the stub that stands for it, and the version it has."""

_PLATFORMS = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
_CONFIG = """\
disable_checkpoint = true
provider_installation {{
  filesystem_mirror {{
    path = {path}
  }}
}}
"""
# What a test's Terraform sees of this machine: no account of whoever runs the tests.
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START")


def require_terraform() -> str:
    """Return the path of `terraform`; without one skip the test, or in CI fail it."""
    return shutil.which("terraform") or lacking("terraform is not installed")


@dataclass(frozen=True)
class Mirror:
    """A folder from which `terraform init` takes the stubs, and no other provider.

    Attributes:
        path: The folder.
        config: The command line's configuration that names it.
    """

    path: Path
    config: Path

    @classmethod
    def make(cls, folder: Path) -> Mirror:
        """Fill an empty folder and return it."""
        path, config = folder / "mirror", folder / "terraform.tfrc"
        mirror = cls(path, config)
        for address, (name, version) in STUBS.items():
            mirror.add(address, version, f"-m tests.terraform.stub {name}")
        config.write_text(_CONFIG.format(path=json.dumps(str(path))), encoding="utf-8")
        return mirror

    def add(self, address: str, version: str, words: str) -> None:
        """Put a provider there that is a module of this repository, run by this Python."""
        shim = (
            f'#!/bin/sh\nPYTHONPATH="{ROOT}" PYTHONDONTWRITEBYTECODE=1 '
            f'exec "{sys.executable}" {words} "$@"\n'
        )
        for platform in _PLATFORMS:
            kind = address.rpartition("/")[2]
            program = (
                self.path / address / version / platform / f"terraform-provider-{kind}_v{version}"
            )
            program.parent.mkdir(parents=True)
            program.write_text(shim, encoding="utf-8")
            program.chmod(0o755)


@dataclass(frozen=True)
class Done:
    """One command that has ended.

    Attributes:
        words: The command.
        code: Its exit code.
        out: What it wrote, without colours.
        err: And as errors.
    """

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def ok(self) -> Done:
        """Return itself. Raises `AssertionError` when the command has failed."""
        assert self.code == 0, f"{' '.join(self.words)} -> {self.code}\n{self.out}\n{self.err}"
        return self

    def read(self) -> Any:
        """Return the output as JSON."""
        return json.loads(self.out)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of a command that was run with `-json`."""
        for line in self.out.splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def errors(self) -> list[str]:
        """Return what Terraform says went wrong: each error, summary and detail."""
        found = [m["diagnostic"] for m in self.messages() if "diagnostic" in m]
        return [
            f"{d['summary']}: {d.get('detail', '')}".strip()
            for d in found
            if d["severity"] == "error"
        ]


@dataclass
class Workspace:
    """A folder of HCL in which `terraform` runs.

    Attributes:
        folder: The root module.
        mirror: Where its providers come from.
        env: More variables of the environment.
        limit_s: Longest time for one command; it is then interrupted, and its end awaited.
    """

    folder: Path
    mirror: Mirror
    env: dict[str, str] = field(default_factory=dict)
    limit_s: float = 240.0

    @classmethod
    def of(
        cls,
        folder: Path,
        mirror: Mirror,
        source: Path | str,
        *,
        files: Mapping[str, str] | None = None,
    ) -> Workspace:
        """Return a workspace in a copy of all of `terraform/`, so that modules find one another.

        Args:
            folder: An empty folder, for the copy.
            mirror: Where its providers come from.
            source: The root module, inside `terraform/`, such as `modules/aws`.
            files: More files of the root module.
        """
        shutil.copytree(
            TERRAFORM,
            folder / "terraform",
            ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"),
        )
        root = folder / "terraform" / source
        root.mkdir(parents=True, exist_ok=True)
        for name, text in (files or {}).items():
            (root / name).write_text(text, encoding="utf-8")
        return cls(root, mirror)

    def copy(self, folder: Path) -> Workspace:
        """Return a copy of it as it is now, in a new folder: initialised, when this one is."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Workspace(folder, self.mirror, dict(self.env), self.limit_s)

    def run(self, *words: str) -> Done:
        """Run `terraform` with some words until it ends."""
        command = (require_terraform(), *words)
        home = self.mirror.path.parent
        env = {k: os.environ[k] for k in _KEPT if k in os.environ}
        env |= {
            "HOME": str(home),
            "TF_CLI_CONFIG_FILE": str(self.mirror.config),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            **self.env,
        }
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            raise AssertionError(
                f"{' '.join(words)} took longer than {self.limit_s:g} s\n{out}\n{err}"
            ) from None
        return Done(words, process.returncode, out, err)

    def init(self) -> Workspace:
        """Initialise it, without a backend."""
        self.run("init", "-no-color", "-input=false", "-backend=false").ok()
        return self

    def validate(self) -> list[str]:
        """Return what `terraform validate` finds wrong."""
        found = self.run("validate", "-json").read()["diagnostics"]
        return [
            f"{d['summary']}: {d.get('detail', '')}".strip()
            for d in found
            if d["severity"] == "error"
        ]

    def plan(self, variables: Mapping[str, Any] | None = None, *more: str) -> Done:
        """Plan, and return its messages; the exit code is 2 when something would change."""
        return self.run(
            *("plan", "-json", "-input=false", "-detailed-exitcode", "-lock=false"),
            *more,
            *_given(variables),
        )

    def apply(self, variables: Mapping[str, Any] | None = None, *more: str) -> Done:
        """Make it so."""
        return self.run(
            "apply", "-json", "-input=false", "-auto-approve", *more, *_given(variables)
        )

    def destroy(self, variables: Mapping[str, Any] | None = None, *more: str) -> Done:
        """Remove everything that is in the state."""
        return self.run(
            "destroy", "-json", "-input=false", "-auto-approve", *more, *_given(variables)
        )

    def test(self, *more: str) -> Done:
        """Run the module's own tests, `tests/*.tftest.hcl`."""
        return self.run("test", "-no-color", *more)

    def outputs(self) -> dict[str, Any]:
        """Return the values of the outputs."""
        found = self.run("output", "-json").ok().read()
        return {name: item["value"] for name, item in found.items()}

    def in_state(self) -> list[str]:
        """Return the addresses of what is in the state, data sources left out."""
        lines = self.run("state", "list").out.split()
        return [name for name in lines if not name.startswith("data.") and ".data." not in name]


def _given(variables: Mapping[str, Any] | None) -> Iterable[str]:
    for name, value in (variables or {}).items():
        yield f"-var={name}={value if isinstance(value, str) else json.dumps(value)}"

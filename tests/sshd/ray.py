"""Interpreters for hosts: real Python, and in place of Ray a fake of any version."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.node.box import FAKE_RAY

_SCRIPTS = """\
import runpy, sys
sys.argv[0] = {fake!r}
runpy.run_path({fake!r}, run_name="__main__")
"""


def interpreter(folder: Path, ray_version: str = "2.60.0") -> str:
    """Make an interpreter in which `-m ray.scripts.scripts` is the fake; return its path."""
    base = Path(sys._base_executable)  # type: ignore[attr-defined]  # of a virtual environment
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    if ray_version:
        about = site / f"ray-{ray_version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Name: ray\nVersion: {ray_version}\n")
        scripts = site / "ray" / "scripts"
        scripts.mkdir(parents=True)
        for package in (site / "ray", scripts):
            (package / "__init__.py").write_text("")
        (scripts / "scripts.py").write_text(_SCRIPTS.format(fake=str(FAKE_RAY)))
    return str(folder / "bin" / "python")


def nvidia_smi(*cards: tuple[str, str, int], driver: str = "570.86.15", cuda: str = "12.8") -> str:
    """Return the text of an `nvidia-smi` that lists cards: uuid, name, memory in MiB."""
    lines = "\n".join(f"{uuid}, {name}, {memory}, {driver}" for uuid, name, memory in cards)
    return f"""\
#!/bin/sh
case "$*" in
*--query-gpu*) cat <<'END'
{lines}
END
;;
*) echo "| NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: {cuda} |" ;;
esac
"""

"""What tests with real SSH servers need of this machine; installed when we may."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from tests.lacking import lacking

_INSTALL_S = 240


def need_sshd() -> None:
    """Skip the test where there is no OpenSSH server, and fail it in CI."""
    _need({"sshd": "openssh-server", "ssh": "openssh-client", "ssh-keygen": "openssh-client"})
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists; usually systemd's work


def need_namespaces() -> None:
    """Skip the test where no network namespaces can be made, and fail it in CI."""
    need_sshd()
    if os.geteuid() != 0:
        lacking("only root can make network namespaces")
    _need({"ip": "iproute2"})


def which(program: str) -> str | None:
    """Return the path of a program, also where only root's PATH leads."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def _need(package_by_program: dict[str, str]) -> None:
    missing = {p for program, p in package_by_program.items() if which(program) is None}
    if missing and os.geteuid() == 0:
        _install(tuple(sorted(missing)))
    left = [package for program, package in package_by_program.items() if which(program) is None]
    if left:
        lacking(f"install the package {left[0]!r} (Debian, Ubuntu)")


@lru_cache
def _install(packages: tuple[str, ...]) -> None:
    if which("apt-get") is None:
        return
    subprocess.run(
        ["apt-get", "install", "-y", "--no-install-recommends", *packages],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_INSTALL_S,
    )

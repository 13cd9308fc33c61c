"""Whether this machine can have bodies at all."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.lacking import lacking

_PROGRAMS = ("ip", "unshare", "mount", "curl", "bash")
_NAMESPACES = ("--net", "--pid", "--fork", "--mount", "--uts", "--ipc", "--mount-proc")


def require_bodies() -> None:
    """Skip the test where bodies cannot be had; with CI=true fail it."""
    if reason := _missing():
        lacking(reason)


def have_bodies() -> bool:
    """Return whether bodies can be had here, for a test that can do without."""
    return not _missing()


def _missing() -> str:
    if os.geteuid() != 0:
        return "instances with bodies need root: they are Linux namespaces"
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} here: install iproute2, util-linux and curl"
    tried = subprocess.run(["unshare", *_NAMESPACES, "true"], capture_output=True, text=True)
    if tried.returncode:
        return f"this machine does not let us make namespaces: {tried.stderr.strip()}"
    return ""

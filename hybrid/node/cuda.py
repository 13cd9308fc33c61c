"""Whether a machine's CUDA fits its driver: what the driver serves, and what the image brings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

DRIVER = ("/bin/sh", "-c", "nvidia-smi | grep -m1 -E 'CUDA (UMD )?Version'")
"""Says up to which CUDA the driver serves. No CUDA in its words: it does not say."""

NVCC = ("/bin/sh", "-c", 'PATH="$PATH:/usr/local/cuda/bin" nvcc --version')

# "CUDA Version" until driver 570, "CUDA UMD Version" since.
_DRIVER = re.compile(r"CUDA (?:UMD )?Version: *([0-9]+(?:\.[0-9]+)?)")
_NVCC = re.compile(r"release ([0-9]+(?:\.[0-9]+)?)")
_LIBRARY = re.compile(r"libcudart\.so\.([0-9]+(?:\.[0-9]+)?)")
_PLACES = ("/usr/local/cuda*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")


def served_by_driver(words: str) -> str:
    """Return the newest CUDA that the driver serves, from the words of `DRIVER`; `""`: unknown."""
    found = _DRIVER.search(words)
    return found[1] if found else ""


def of_compiler(words: str) -> str:
    """Return the version in the words of `NVCC`; `""` without one."""
    found = _NVCC.search(words)
    return found[1] if found else ""


def libraries(root: Path = Path("/"), packages: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the versions of CUDA's runtime library that are installed, each once.

    Args:
        root: The file system to look in.
        packages: Folders of Python packages, where pip puts it too.
    """
    found = {
        match[1]
        for place in _PLACES
        for path in root.glob(f"{place.strip('/')}/libcudart.so.*")
        if (match := _LIBRARY.fullmatch(".".join(path.name.split(".")[:4])))
    }
    for folder in packages or sys.path:
        for path in Path(folder or ".").glob("nvidia/*/lib/libcudart.so.*"):
            if match := _LIBRARY.match(path.name):
                found.add(match[1])
    return tuple(sorted(found, key=numbers))


def trouble(served: str, brought: Iterable[str], least: str = "") -> str:
    """Return what is wrong, or `""`.

    A driver serves every CUDA of its major version and older ones. Of several that an image
    brings one that is served is enough.

    Args:
        served: By the driver; `""` when it does not say.
        brought: Versions of the image's own CUDA.
        least: What the cluster's work needs; `""` for any.
    """
    if least and not served:
        return f"nvidia-smi does not say which CUDA its driver serves, and {least} is expected"
    if least and numbers(served) < numbers(least):
        return f"its NVIDIA driver serves CUDA up to {served}, and {least} is expected"
    versions = sorted(brought, key=numbers)
    if served and versions and numbers(versions[0])[:1] > numbers(served)[:1]:
        brings = ", ".join(versions)
        return f"it brings CUDA {brings}, and its NVIDIA driver serves CUDA up to {served}"
    return ""


def numbers(version: str) -> tuple[int, ...]:
    """Return a version for comparison; what is no number in it counts for nothing."""
    return tuple(map(int, re.findall(r"[0-9]+", version)))

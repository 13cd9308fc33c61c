"""Baidu's instance types ("specs"): their names say what is inside.

`bcc.hgn5IB.c116m978.8A100-80g` has 116 CPUs, 978 GiB of memory and 8 GPUs A100-80GB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hybrid.core import gpu_names

SPEC = re.compile(r"[a-z]{2,8}(?:\.[A-Za-z0-9_-]+){1,5}")
_SIZE = re.compile(r"\.c(\d{1,4})m(\d{1,5})(?=\.|$)")
# Not `2d`, local disks, and not `8re`, network cards.
_GPUS = re.compile(r"\.(\d{1,2})(?!(?:d|re)(?:\.|$))([A-Za-z][A-Za-z0-9-]*)(?=\.|$)")


@dataclass(frozen=True)
class Inside:
    """What a name says is inside. 0 and `""` where it says nothing.

    Attributes:
        accelerator: Our name of the GPU, see `core.gpu_names`.
    """

    cpu_count: int = 0
    memory_gib: int = 0
    gpu_count: int = 0
    accelerator: str = ""


def inside(instance_type: str) -> Inside:
    """Return what the name of an instance type says is inside."""
    size = _SIZE.search(instance_type)
    if size is None:
        return Inside()
    # GPUs stand right behind the size.
    gpus = _GPUS.match(instance_type, size.end())
    return Inside(
        cpu_count=int(size[1]),
        memory_gib=int(size[2]),
        gpu_count=int(gpus[1]) if gpus else 0,
        accelerator=gpu_names.named(gpus[2]) if gpus else "",
    )

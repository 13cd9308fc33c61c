"""One naming of GPUs for all clouds: Ray's own type, such as `H100` or `RTX-PRO-6000`.

Where a type is sold with different memory, that is part of the name: `A100-40GB`, `A100-80GB`,
`V100-32GB`. A bare `A100` then means any of them. Ray marks nodes with the bare type.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from functools import lru_cache

from hybrid.core.quantity import GpuRequest, gpu_request

_TYPES = (
    *("A10", "A10G", "A100", "B200", "B300", "GB200", "GB300", "H20", "H100", "H200", "K40"),
    *("K80", "L4", "L40", "L40S", "P4", "P40", "P100", "RTX-4090", "RTX-5090", "RTX-PRO-4500"),
    *("RTX-PRO-6000", "T4", "T4G", "V100"),
)
_SOLD_WITH = frozenset({"A100", "V100"})
"""Types sold with different memory."""

_NOISE = frozenset({"NVIDIA", "TESLA", "GEFORCE", "SERVER", "BLACKWELL", "EDITION", "SXM", "PCIE"})
_MEMORY = re.compile(r"([0-9]{2,3})(?:G|GB|GIB)?")
_SAME_RATIO = 0.1  # a cloud says 22.4 GiB where another says 24 GB
_MODEL = re.compile(r"([0-9]{4})(?::([0-9]{1,6}))?")
"""A model by its number alone, such as `4090:8`; nobody has so many GPUs in one machine."""


def request(text: str) -> GpuRequest:
    """Return the GPUs named by `A100:8`, `a100`, `GPU:4` or, by its number, `4090:8`.

    Raises:
        ValueError: It is none of these.
    """
    if (match := _MODEL.fullmatch(text)) and (count := int(match[2] or 1)):
        return GpuRequest(accelerator=match[1], count=count)
    return gpu_request(text)


def named(text: str, memory_gib: float | None = None) -> str:
    """Return our name of a GPU: `nvidia-tesla-t4` is `T4`, `A100-80g` is `A100-80GB`.

    Args:
        text: Name in the words of a cloud or of a person.
        memory_gib: Its memory, when that is known.
    """
    key, memory = _parsed(text)
    spelling = next((name for name in _TYPES if _parsed(name)[0] == key), None)
    if spelling is None:
        return "-".join(_words(text))
    memory = round(memory_gib) if memory_gib is not None else memory
    return f"{spelling}-{memory}GB" if memory and spelling in _SOLD_WITH else spelling


def ray_type(name: str) -> str:
    """Return what Ray calls it in `accelerator_type:...`: `A100-80GB` is `A100`."""
    bare, _, memory = name.rpartition("-")
    return bare if bare in _SOLD_WITH and memory.endswith("GB") else name


def is_same(asked: str, name: str, memory_gib: float | None) -> bool:
    """Return whether a GPU is what somebody asked for.

    Args:
        asked: As people write it: `a100`, `A100-80GB`, `4090`. Without a memory any will do;
            with one, a GPU whose memory is not known will not.
        name: Our name of the GPU.
        memory_gib: Its memory, when that is known.
    """
    (key, wanted), (own, own_memory) = _parsed(asked), _parsed(name)
    is_model = _MODEL.fullmatch(key) is not None and own.endswith(key)
    if key != own and not is_model:
        return False
    has = own_memory or memory_gib
    return wanted is None or (has is not None and abs(has - wanted) <= _SAME_RATIO * wanted)


def unknown(asked: str, names: Collection[str]) -> str:
    """Return the sentence that says that none of `names` is the GPU asked for."""
    by_key = {_parsed(name)[0]: ray_type(name) for name in names}
    by_key |= {"".join(_words(name)): name for name in names}
    hint = f"{asked!r} is no GPU of the catalog"
    key = "".join(_words(asked))
    near = [k for k in difflib.get_close_matches(key, by_key, n=2) if abs(len(k) - len(key)) <= 2]
    if near:
        hint += f"; did you mean {' or '.join(by_key[found] for found in near)}?"
    return (
        f"{hint} It has: {', '.join(sorted(names))}"
        if near
        else (f"{hint}; it has: {', '.join(sorted(names))}")
    )


def _words(text: str) -> list[str]:
    words = re.findall(r"[A-Z0-9]+", text.upper())
    return [word for word in words if word.rstrip("0123456789") not in _NOISE] or words


@lru_cache(maxsize=512)
def _parsed(text: str) -> tuple[str, int | None]:
    """Return the type as letters and digits alone, and the memory that the name tells."""
    words = _words(text)
    if len(words) > 1 and (memory := _MEMORY.fullmatch(words[-1])):
        return "".join(words[:-1]), int(memory[1])
    return "".join(words), None

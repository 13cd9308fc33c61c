"""What the catalog knows is inside an instance type, for what the configuration does not say.

Pure. What it costs is judged when offers are made, since a price grows old.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.core import gpu_names
from hybrid.core.catalog import Catalog, CatalogRow
from hybrid.core.quantity import gpu_request

WORK_MEMORY_RATIO = 0.6
"""Of a machine's memory, what tasks may ask for: Ray's object store takes 30 %, the rest the
system."""

_GIB = 2**30


@dataclass(frozen=True)
class Knowledge:
    """The catalog."""

    catalog: Catalog = field(default_factory=Catalog)

    def filled(self, pool: Mapping[str, object]) -> dict[str, object]:
        """Return a pool of the configuration with what the catalog adds to it.

        Raises:
            ValueError: The pool contradicts the catalog.
        """
        said = {key: value for key, value in pool.items() if value is not None}
        provider = str(said.get("infra", "")).partition("/")[0]
        row = self.catalog.inside(provider, str(said.get("instance_type", "")))
        if row is not None:
            said = {**_inside(row), **said}
            _check_gpus(row, str(said.get("accelerators") or ""))
        return said


def _inside(row: CatalogRow) -> dict[str, object]:
    inside: dict[str, object] = {}
    if row.vcpu_count:
        inside["cpus"] = row.vcpu_count
    if row.memory_gib:
        inside["memory"] = int(row.memory_gib * _GIB * WORK_MEMORY_RATIO)
    if row.gpu:
        inside["accelerators"] = f"{gpu_names.ray_type(row.gpu)}:{row.gpu_count}"
    return inside


def _check_gpus(row: CatalogRow, text: str) -> None:
    """Raise `ValueError` when tasks would be promised GPUs that the machine does not have."""
    asked = gpu_request(text) if text else None
    name, count = (asked.accelerator, asked.count) if asked else ("", 0)
    is_type = not name or gpu_names.is_same(name, row.gpu, row.gpu_memory_gib)
    if count != row.gpu_count or not is_type:
        has = f"{gpu_names.ray_type(row.gpu)}:{row.gpu_count}" if row.gpu else "no GPU"
        raise ValueError(
            f"accelerators is {text or 'empty'}, but {row.instance_type} has {has}; leave it out, "
            "or correct one of them"
        )

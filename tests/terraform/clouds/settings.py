"""Settings made of a module's output, as hybrid's own loader and adapters see them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from hybrid.adapters import catalog
from hybrid.adapters.clock import SystemClock
from hybrid.core.ports import ProviderContext
from hybrid.settings import load


def accepted(output: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the provider's settings, after hybrid and the cloud's adapter have taken them.

    Raises:
        ConfigError: They do not.
    """
    given = {key: value for key, value in output.items() if value is not None}
    name, pools = given.pop("provider"), given.pop("pools")
    file = folder / "hybrid.yaml"
    content = {
        "name": "burst",
        "head": {"cpus": 2},
        "onprem": {"hosts": [{"name": "onprem-1", "accelerators": "A100:8", "cpus": 64}]},
        "providers": {name: given},
        "clouds": {"ordered": [{k: v for k, v in p.items() if v is not None} for p in pools]},
        "budget": {"nodes": 4, "usd_per_hour": 20, "usd_per_day": 150},
    }
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    settings = load(file, {"HOME": "/h"})
    context = ProviderContext(
        cluster_id="c-1",
        cluster_name=settings.name,
        state_dir=str(folder),
        ray_dir=str(folder),
        clock=SystemClock(),
        catalog=catalog.load(),
    )
    (point,) = entry_points(group="hybrid.providers", name=name)
    point.load()(name, settings.provider_raw(name), context)
    return dict(settings.provider_raw(name))

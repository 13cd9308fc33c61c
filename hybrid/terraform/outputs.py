"""Reads the outputs of a Terraform root module as layers of a configuration.

An output that is an object with `provider` says how hybrid uses one cloud account: the rest of
its keys are those of `providers.NAME` in `hybrid.yaml`, and `pools` is what may be rented there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid.core.errors import ConfigError
from hybrid.settings import Layer, known_providers
from hybrid.settings.problem import path_text

PREFIX = "terraform-"
"""Begins the names of all layers that come from outputs."""

_LIMIT_S = 120.0
_KEY = "provider"
_POOLS = "pools"
_EXAMPLE = 'add `output "aws" { value = module.aws.hybrid_provider }` and run `terraform apply`'


def of_folder(folder: Path) -> Sequence[Layer]:
    """Return the layers of a root module that was applied.

    Raises:
        ConfigError: There is no such folder, no Terraform, or nothing in it for us.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: there is no such folder; name the one where you ran `terraform apply`"
        )
    program = shutil.which("terraform")
    if program is None:
        raise ConfigError(
            "terraform is not on PATH, and --from-terraform asks it for its outputs; install it, "
            "or run `terraform output -json` elsewhere and pipe it to --from-terraform -"
        )
    try:
        done = subprocess.run(
            [program, "output", "-json", "-no-color"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{folder}: `terraform output` cannot be run ({error})") from error
    if done.returncode:
        said = " ".join(done.stderr.replace("│", " ").replace("╷", " ").replace("╵", " ").split())
        raise ConfigError(
            f"{folder}: `terraform output` failed ({said}); run `terraform init` there first"
        )
    return of_json(done.stdout, str(folder))


def of_json(text: str, where: str) -> Sequence[Layer]:
    """Return the layers in what `terraform output -json` prints.

    Args:
        text: Its output.
        where: What it is, for people.

    Raises:
        ConfigError: It is something else, or holds nothing for us.
    """
    try:
        outputs = json.loads(text)
        values = {name: item["value"] for name, item in sorted(outputs.items())}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{where}: this is not what `terraform output -json` prints; pipe just that"
        ) from error
    found = [layer for name, value in values.items() for layer in _layers(name, value, where)]
    if not found:
        named = ", ".join(values) or "none"
        raise ConfigError(
            f"{where}: no output is a `hybrid_provider` (outputs: {named}); {_EXAMPLE}"
        )
    _refuse_disagreement(found)
    return found


def of_value(name: str, value: object, source: str) -> Layer:
    """Return one `hybrid_provider` as a layer.

    Raises:
        ConfigError: It is none.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get(_KEY), str):
        raise ConfigError(
            f"{source}: it is no object with `provider`; pass a module's output `hybrid_provider`"
        )
    provider = str(value[_KEY])
    if provider not in known_providers():
        raise ConfigError(
            f"{source}: provider is {provider!r}, and hybrid has no such; it has "
            f"{', '.join(known_providers())}"
        )
    account = {key: item for key, item in value.items() if key not in (_KEY, _POOLS)}
    content: dict[str, Any] = {"providers": {provider: account}}
    if pools := value.get(_POOLS):
        content[_POOLS] = pools
    return Layer(name, source, content)


def _layers(name: str, value: object, where: str) -> Iterator[Layer]:
    """Yield what an output holds: one object, or a list or map of them."""
    if isinstance(value, Mapping) and isinstance(value.get(_KEY), str):
        tidy = "".join(c if c.isalnum() or c in "-_" else "-" for c in name.lower())
        yield of_value(f"{PREFIX}{tidy}"[:63], value, f"output {name} of {where}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, Mapping) and isinstance(item.get(_KEY), str):
                yield from _layers(f"{name}-{key}", item, where)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            if isinstance(item, Mapping):
                yield from _layers(f"{name}-{place}", item, where)


def _refuse_disagreement(layers: Sequence[Layer]) -> None:
    """Refuse two outputs that set one value to two things, or are one cluster's twice."""
    seen: dict[tuple[str, ...], tuple[object, str]] = {}
    pools: dict[str, str] = {}
    for layer in layers:
        for path, value in _leaves(layer.content["providers"], ("providers",)):
            before, source = seen.setdefault(path, (value, layer.source))
            if before != value:
                raise ConfigError(
                    f"{layer.source}: it says {path_text(path)} is {value!r}, and {source} says "
                    f"{before!r}; give each module its own region, or each cluster its own folder"
                )
        listed = layer.content.get(_POOLS)
        for pool in listed if isinstance(listed, list) else []:
            text = json.dumps(pool, sort_keys=True)
            if (source := pools.setdefault(text, layer.source)) != layer.source:
                raise ConfigError(
                    f"{layer.source}: {source} has the same pool; two modules of one cluster "
                    "need pools of their own, so rename or remove one module"
                )


def _leaves(value: object, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*at, str(key)))
    elif value is not None:
        yield at, value

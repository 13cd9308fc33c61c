"""Pieces of configuration that lie over a cluster's file: what Terraform says about it.

A layer is kept in the cluster's state folder, so that every command, and the controller that
takes over after a crash, sees the same configuration. It wins over the file, and an environment
variable wins over it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from hybrid.settings.document import parse
from hybrid.settings.problem import Path, fault

FOLDER = "layers"
POOLS = "pools"
"""A layer's own key: pools that are added to those of the file's `clouds`."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_KEYS = frozenset(
    ("providers", POOLS, "burst", "idle", "drain", "lease", "budget", "jobs", "prices", "backoff")
)
_KIND = "ordered"
"""How pools are taken when the file has none: in their order, which needs no prices."""


@dataclass(frozen=True)
class Layer:
    """A piece of configuration.

    Attributes:
        name: Unique in its cluster; a file name.
        source: Where it came from, for people, such as `output aws of /ops/gpu`.
        content: In the words of `hybrid.yaml`, as JSON; and `pools`.
    """

    name: str
    source: str
    content: Mapping[str, object]

    def check(self) -> None:
        """Refuse what no layer may say.

        Raises:
            SettingsError: Its name, or one of its keys.
        """
        if not _NAME.fullmatch(self.name):
            raise fault(
                self.source,
                f"the name {self.name!r} is not usable; write small letters, digits, - and _",
            )
        if strange := sorted(set(self.content) - _KEYS):
            raise fault(
                self.source,
                f"it may not set {', '.join(map(repr, strange))}; it may set "
                f"{', '.join(sorted(_KEYS))}, the rest belongs in hybrid.yaml",
            )


def stored(state_dir: FilePath) -> Sequence[Layer]:
    """Return a cluster's layers, by name.

    Raises:
        SettingsError: One cannot be read.
    """
    found = []
    for file in _files(state_dir / FOLDER):
        try:
            kept = json.loads(file.read_text())
            found.append(Layer(file.stem, str(kept["source"]), dict(kept["content"])))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise fault(
                str(file), f"this layer cannot be read ({error}); repair or delete it"
            ) from error
    return found


def _files(folder: FilePath) -> Sequence[FilePath]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".json")
    except PermissionError as error:
        if not os.access(folder.parent, os.X_OK, effective_ids=True):
            return ()  # another user's cluster: whatever needs its state folder says so itself
        raise fault(
            str(folder), "this folder cannot be looked into; run this as the cluster's user"
        ) from error
    except OSError:  # there is none; or the state folder's name is refused elsewhere
        return ()


def store(state_dir: FilePath, layer: Layer) -> None:
    """Keep a layer; one of its name is replaced, whole or not at all."""
    layer.check()
    folder = state_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f".{layer.name}.new"
    draft.write_text(json.dumps({"source": layer.source, "content": dict(layer.content)}))
    draft.chmod(0o600)
    draft.replace(folder / f"{layer.name}.json")


def remove(state_dir: FilePath, name: str) -> None:
    """Forget a layer; one that is not there is fine."""
    if _NAME.fullmatch(name):
        (state_dir / FOLDER / f"{name}.json").unlink(missing_ok=True)


def laid_over(
    content: Mapping[str, object], layers: Iterable[Layer]
) -> tuple[dict[str, object], dict[Path, str]]:
    """Return a file's content with layers over it, and the source of what they set."""
    merged, sources = dict(content), dict[Path, str]()
    for layer in layers:
        layer.check()
        # JSON is YAML: so a value here is read, and refused, just as one in the file
        said = parse(json.dumps(_without_null(dict(layer.content))), layer.source).content
        pools = said.pop(POOLS, [])
        merged = _over(merged, said, (), layer.source, sources)
        merged = _with_pools(merged, pools, layer.source, sources)
    return merged, sources


def _over(
    below: Mapping[str, object],
    above: Mapping[str, object],
    at: Path,
    source: str,
    sources: dict[Path, str],
) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        path, old = (*at, key), below.get(key)
        if isinstance(value, dict) and (old is None or isinstance(old, Mapping)):
            merged[key] = _over(old or {}, value, path, source, sources)
        else:
            merged[key] = value
            _note(path, value, source, sources)
    return merged


def _with_pools(
    content: dict[str, object], pools: object, source: str, sources: dict[Path, str]
) -> dict[str, object]:
    if not isinstance(pools, list):
        raise fault(source, "pools: it is not a list; write a list of objects with infra")
    if not pools:
        return content
    clouds = content.get("clouds")
    clouds = dict(clouds) if isinstance(clouds, Mapping) else {}
    kind = next((kind for kind in ("any_of", "ordered") if clouds.get(kind)), _KIND)
    known = clouds.get(kind)
    known = list(known) if isinstance(known, list) else []
    for place, pool in enumerate(pools, len(known)):
        _note(("clouds", kind, place), pool, source, sources)
    return {**content, "clouds": {**clouds, kind: [*known, *pools]}}


def _note(path: Path, value: object, source: str, sources: dict[Path, str]) -> None:
    sources[path] = source
    if isinstance(value, Mapping):
        for key, item in value.items():
            _note((*path, str(key)), item, source, sources)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _note((*path, place), item, source, sources)


def _without_null(value: object) -> object:
    """Return JSON without its nulls: a module's way to say nothing about a value."""
    if isinstance(value, Mapping):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_null(item) for item in value]
    return value

"""Shows a configuration: every value, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hybrid.settings.model import Settings
from hybrid.settings.problem import Path, path_text


class Explained(NamedTuple):
    """One value of a configuration.

    Attributes:
        path: Where it is, such as `clouds.any_of[0].infra`.
        value: As it is written in a file; secrets masked.
        origin: `default`, `FILE:LINE`, or an environment variable.
    """

    path: str
    value: object
    origin: str


def dump(settings: Settings) -> dict[str, Any]:
    """Return the configuration as a file could hold it: defaults filled in, secrets masked."""
    return settings.model_dump(mode="json", by_alias=True)


def explain(settings: Settings) -> list[Explained]:
    """Return every value with its origin, in the order of the reference."""
    return [
        Explained(path_text(path), value, settings.origin.describe(path))
        for path, value in _leaves(dump(settings), ())
    ]


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from _leaves(item, (*path, place))
    else:
        yield path, value

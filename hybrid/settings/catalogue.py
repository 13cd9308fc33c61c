"""Every key of a configuration: for hints, for environment variables and for `config show`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hybrid.settings.model import Settings
from hybrid.settings.problem import Path


@dataclass(frozen=True)
class Key:
    """One key of the configuration.

    Attributes:
        path: Where it stands; `[]` stands for any place in a list.
        field_name: Its name in Python.
        section: What it holds, when it holds a mapping or a list of mappings.
        is_list: Whether it holds a list.
    """

    path: tuple[str, ...]
    field_name: str
    section: type[BaseModel] | None
    is_list: bool

    @property
    def is_single(self) -> bool:
        """Whether it holds one value and is in no list."""
        is_mapping = self.path in (("providers",), ("prices", "rates"))
        return self.section is None and "[]" not in self.path and not is_mapping


def keys(model: type[BaseModel] = Settings, above: tuple[str, ...] = ()) -> Iterator[Key]:
    """Yield every key, each section before what is in it."""
    for field_name, info in model.model_fields.items():
        path = (*above, info.alias or field_name)
        section = _section(info.annotation)
        is_list = section is not None and _is_list(info)
        yield Key(path=path, field_name=field_name, section=section, is_list=is_list)
        if section is not None:
            yield from keys(section, (*path, "[]") if is_list else path)


def model_at(path: Path) -> type[BaseModel] | None:
    """Return the section that a mapping at `path` is read as, if it is one."""
    wanted = tuple("[]" if isinstance(part, int) else part for part in path)
    if not wanted:
        return Settings
    return next(
        (k.section for k in keys() if ((*k.path, "[]") if k.is_list else k.path) == wanted), None
    )


def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a section, as they are written."""
    return tuple(info.alias or name for name, info in model.model_fields.items())


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside `X`, `X | None`, `tuple[X, ...]` or `tuple[X, ...] | None`."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    return next(filter(None, map(_section, get_args(annotation))), None)


def _is_list(info: FieldInfo) -> bool:
    parts = (info.annotation, *get_args(info.annotation))
    return any(get_origin(part) is tuple for part in parts)

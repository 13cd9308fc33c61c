"""What a provider has to say to the user, with the place in the configuration it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.terraform.plugin.messages import MESSAGES

_ERROR, _WARNING = 1, 2


@dataclass(frozen=True)
class Key:
    """A step into a map, as against one into an object (a plain string)."""

    name: str


Path = Sequence[str | int | Key]
"""Steps to a value: attribute or block name, index in a list, `Key` of a map."""


def wire_path(path: Path) -> Any:
    """Return a path as an `AttributePath`."""
    return MESSAGES["AttributePath"](steps=[_step(step) for step in path])


def _step(step: str | int | Key) -> Any:
    cls = MESSAGES["AttributePath.Step"]
    if isinstance(step, Key):
        return cls(element_key_string=step.name)
    if isinstance(step, int):
        return cls(element_key_int=step)
    return cls(attribute_name=step)


class Diagnostics:
    """Collects errors and warnings of one call."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def error(self, summary: str, detail: str = "", at: Path = ()) -> None:
        """Refuse, and say why; `at` makes Terraform show the line."""
        self._add(_ERROR, summary, detail, at)

    def warn(self, summary: str, detail: str = "", at: Path = ()) -> None:
        """Say something that stops nothing."""
        self._add(_WARNING, summary, detail, at)

    def _add(self, severity: int, summary: str, detail: str, at: Path) -> None:
        message = MESSAGES["Diagnostic"](severity=severity, summary=summary, detail=detail)
        if at:
            message.attribute.CopyFrom(wire_path(at))
        self.messages.append(message)

    @property
    def has_errors(self) -> bool:
        """Whether anything was refused."""
        return any(message.severity == _ERROR for message in self.messages)

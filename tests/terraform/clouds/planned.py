"""What a plan would make, and rules about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tests.terraform.workspace import Workspace


@dataclass(frozen=True)
class Planned:
    """The resources of a plan: what is known before an apply, as values by name."""

    resources: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, workspace: Workspace, variables: Mapping[str, Any]) -> Planned:
        """Plan, and return what would be made."""
        done = workspace.plan(variables, "-out=planned")
        assert done.code in (0, 2), done.errors()
        shown = workspace.run("show", "-json", "planned").ok().read()
        return cls(list(_resources(shown["planned_values"]["root_module"])))

    def of_type(self, name: str) -> list[Mapping[str, Any]]:
        """Return the values of all resources of a type. Raises when there is none."""
        found = [r["values"] for r in self.resources if r["type"] == name]
        assert found, f"the plan has no {name}, so a rule about it says nothing"
        return found


Law: TypeAlias = Callable[[Planned], bool]


@dataclass(frozen=True)
class Mistake:
    """A slip of somebody who edits a module.

    Attributes:
        file: Which file.
        old: What stands there, once.
        new: What they write instead.
        noticed: Name of the law that is then broken, or what `terraform validate` says.
    """

    file: str
    old: str
    new: str
    noticed: str


def seed(folder: Path, mistakes: Sequence[Mistake]) -> None:
    """Make mistakes in a copy of a module."""
    for mistake in mistakes:
        path = folder / mistake.file
        text = path.read_text(encoding="utf-8")
        assert text.count(mistake.old) == 1, f"{mistake.file}: {mistake.old!r} is not there once"
        path.write_text(text.replace(mistake.old, mistake.new), encoding="utf-8")


def broken(laws: Mapping[str, Law], planned: Planned) -> set[str]:
    """Return the names of the laws that a plan breaks."""
    return {name for name, holds in laws.items() if not holds(planned)}


def sentence(errors: Sequence[str], pattern: str) -> str:
    """Return the one error that fits a pattern, with its spaces made single."""
    found = [" ".join(e.split()) for e in errors if re.search(pattern, " ".join(e.split()))]
    assert len(found) == 1, f"{pattern!r} fits {len(found)} of {errors}"
    return found[0]


def _resources(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from module.get("resources", [])
    for child in module.get("child_modules", []):
        yield from _resources(child)

"""What is wrong in a configuration, all of it at once, each in one line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from hybrid.core.errors import ConfigError
from hybrid.core.quantity import shown

_WORD = re.compile(r"[A-Za-z0-9_./-]{1,100}")

Path: TypeAlias = tuple[str | int, ...]
"""Where a value is: keys and list positions, such as `("clouds", "any_of", 0, "infra")`."""


@dataclass(frozen=True)
class Problem:
    """One thing an operator must change.

    Attributes:
        path: Where it is; empty for the file as a whole.
        text: What is wrong, then `;`, then what to write.
        line: Line of the file, when known.
        origin: The environment variable the value came from, or `""` for the file.
    """

    path: Path
    text: str
    line: int | None = None
    origin: str = ""

    def describe(self, source: str) -> str:
        """Return the problem as one line; `source` is the file it is in."""
        where = self.origin or source
        at = f" {path_text(self.path)}:" if self.path else ""
        line = f" (line {self.line})" if self.line and not self.origin else ""
        return f"{where}:{at} {self.text}{line}"


class SettingsError(ConfigError):
    """A configuration with at least one problem.

    Attributes:
        source: The file, as the user named it.
        problems: All of them: those of variables, then those of the file, in its order.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=_place))
        super().__init__("\n".join(p.describe(source) for p in self.problems))


def _place(problem: Problem) -> tuple[bool, float, str]:
    """Return a sort key: variables first, then the file from top to bottom, then what it lacks."""
    return not problem.origin, problem.line or math.inf, path_text(problem.path)


def path_text(path: Path) -> str:
    """Return a path as people write it: `clouds.any_of[0].infra`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            # A key can hold anything; what is not a plain word is quoted and cut.
            text += f".{part}" if _WORD.fullmatch(part) else f".{shown(part)}"
    return text.removeprefix(".")


def fault(source: str, text: str, line: int | None = None) -> SettingsError:
    """Return the error for a file that is wrong as a whole."""
    return SettingsError(source, [Problem(path=(), text=text, line=line)])

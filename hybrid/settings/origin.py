"""Where each value of a configuration came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from hybrid.settings.problem import Path, Problem


@dataclass(frozen=True)
class Origin:
    """The file, the lines and the environment variables behind a configuration.

    Attributes:
        source: The file as the user named it, or what stands for one.
        file: Its absolute path; `None` when there is none.
        lines: The line of each value of the file.
        nulls: Values that the file leaves to their defaults by null.
        variables: The environment variable of each value that one has set.
        layers: Where each value came from that a layer has set; see `hybrid.settings.layers`.
        home: The folder that holds the state folders of all clusters.
    """

    source: str = "<no file>"
    file: FilePath | None = None
    lines: Mapping[Path, int] = field(default_factory=dict)
    nulls: frozenset[Path] = frozenset()
    variables: Mapping[Path, str] = field(default_factory=dict)
    layers: Mapping[Path, str] = field(default_factory=dict)
    home: FilePath = field(default_factory=lambda: FilePath("~/.hybrid"))

    def line(self, path: Path) -> int | None:
        """Return the line of a value, or of the nearest thing around it that has one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def variable(self, path: Path) -> str:
        """Return the environment variable that set a value, or `""`."""
        return self.variables.get(path, "")

    def layer(self, path: Path) -> str:
        """Return where a value came from that a layer has set, or something around it; or `""`."""
        found = (self.layers[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.layers)
        return next(found, "")

    def problem(self, path: Path, text: str) -> Problem:
        """Return a problem with the value at `path`, with its line, layer or variable."""
        origin = self.variable(path) or self.layer(path)
        return Problem(path=path, text=text, line=self.line(path), origin=origin)

    def describe(self, path: Path) -> str:
        """Return where a value came from: a variable, a layer, `file:line`, or `default`."""
        if self.variable(path):
            return self.variable(path)
        if path in self.layers:
            return self.layers[path]
        is_given = path in self.lines and path not in self.nulls
        return f"{self.source}:{self.lines[path]}" if is_given else "default"

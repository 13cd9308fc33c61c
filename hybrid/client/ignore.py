"""Which files of a working directory stay at home: defaults, `.gitignore`, `.hybridignore`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RULE_FILES = (".gitignore", ".hybridignore")
DEFAULTS = (
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "__pycache__",
    "*.pyc",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".DS_Store",
)


@dataclass(frozen=True)
class Rule:
    """One line of an ignore file.

    Attributes:
        folder: Where the file is, relative to the root; `""` for the root.
        is_kept: The line began with `!`.
    """

    pattern: re.Pattern[str]
    folder: str
    is_kept: bool
    is_folder_only: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path (relative to the root, with slashes) is meant."""
        if self.is_folder_only and not is_folder:
            return False
        if self.folder:
            if not path.startswith(self.folder + "/"):
                return False
            path = path[len(self.folder) + 1 :]
        return self.pattern.fullmatch(path) is not None


def default_rules() -> tuple[Rule, ...]:
    """Return what is never sent."""
    return tuple(rule for line in DEFAULTS for rule in _parse(line, ""))


def rules_in(folder: Path, name: str) -> tuple[Rule, ...]:
    """Return the rules that a folder's own ignore files add.

    Args:
        folder: The folder.
        name: It, relative to the root.
    """
    rules: list[Rule] = []
    for file in RULE_FILES:
        try:
            lines = (folder / file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        rules += [rule for line in lines for rule in _parse(line, name)]
    return tuple(rules)


def is_ignored(path: str, rules: Sequence[Rule], *, is_folder: bool) -> bool:
    """Return whether the last rule that matches leaves the path out, as git does."""
    for rule in reversed(rules):
        if rule.matches(path, is_folder=is_folder):
            return not rule.is_kept
    return False


def _parse(line: str, folder: str) -> list[Rule]:
    text = line.rstrip()
    if not text or text.startswith("#"):
        return []
    is_kept = text.startswith("!")
    text = text.removeprefix("!")
    is_folder_only = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return []
    is_anchored = "/" in text
    pattern = _to_regex(text.removeprefix("/"))
    if not is_anchored:
        pattern = f"(?:.*/)?{pattern}"
    try:
        return [Rule(re.compile(pattern, re.DOTALL), folder, is_kept, is_folder_only)]
    except re.error:  # a broken bracket: git matches nothing with it either
        return []


def _to_regex(glob: str) -> str:
    text = ""
    index = 0
    while index < len(glob):
        rest = glob[index:]
        if rest.startswith("**/"):
            text, index = text + "(?:.*/)?", index + 3
        elif rest.startswith("**"):
            text, index = text + ".*", index + 2
        elif rest[0] == "*":
            text, index = text + "[^/]*", index + 1
        elif rest[0] == "?":
            text, index = text + "[^/]", index + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inside = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
            text += "[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]"
            index += end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            text, index = text + re.escape(rest[1]), index + 2
        else:
            text, index = text + re.escape(rest[0]), index + 1
    return text

"""Reads a YAML file into plain values and remembers the line of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import yaml
import yaml.reader
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hybrid.settings.problem import Path, Problem, SettingsError, fault
from hybrid.settings.scalars import Plain, is_null
from hybrid.settings.textfile import read_text

_MAX_VALUES = 50_000  # an alias can stand for a tree: a few lines may mean billions of values
_MERGE = "<<"
_UNCLOSED = ("expected ',' or", "end of stream")
_RESERVED = "a value begins with a sign that YAML keeps for itself; put quotes around it"
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)
_HINTS = {  # a sign of PyYAML's message -> what it means; the first that fits wins
    "\\t": "a tab where YAML allows only spaces; indent with spaces",
    "mapping values are not allowed here": "a second ': ' on a line, or wrong indentation; "
    "put quotes around a value that holds ': '",
    "could not find expected ':'": "a line without ': ' after its key, or an open quote",
    "expected ',' or": "a bracket or brace is not closed",
    "<block end>, but found '<scalar>'": "text after a closing quote; put all of it in quotes",
    "expected the node content": _RESERVED,
    "cannot start any token": _RESERVED,
    "alphabetic or numeric character": _RESERVED,
    "unknown escape character": "a backslash in double quotes; use single quotes",
    "expected <block end>": "wrong indentation; keys of one mapping begin in one column",
    "expected a single document": "a second document (`---`); keep one in a file",
    "found unexpected end of stream": "a quote or bracket is not closed",
    "undefined alias": "an alias (`*name`) without its anchor (`&name`) above it",
}


@dataclass
class Document:
    """A file's values, by the words it uses.

    Attributes:
        content: Mappings, lists, text (`Plain` when unquoted) and `None`.
        lines: The line of each value, by path.
        nulls: Paths whose value is null, which means the default.
        problems: What is wrong with the file as YAML that does not stop us reading it.
    """

    content: dict[str, object] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    nulls: frozenset[Path] = frozenset()
    problems: list[Problem] = field(default_factory=list)


def read(path: FilePath, source: str) -> Document:
    """Return the values of a file.

    Args:
        path: The file.
        source: Its name in messages.

    Raises:
        SettingsError: It cannot be read, or it is not a YAML mapping.
    """
    return parse(read_text(path, source), source)


def parse(text: str, source: str) -> Document:
    """Return the values of YAML text. Arguments and errors as in `read`."""
    reader = _Reader()
    try:
        root = _Composer(text).get_single_node()
        content = reader.value(root, ()) if root is not None else None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, _TooManyValuesError) as err:
        raise _refusal(err, text, source) from err
    if content is None:
        text = "it is empty; begin with `name: my-cluster`, or copy configs/local.yaml"
        raise fault(source, text)
    if not isinstance(content, dict):
        kind = "a list" if isinstance(content, list) else "a single value"
        raise fault(source, f"it holds {kind}; write keys such as `name: my-cluster`", 1)
    return Document(content, reader.lines, frozenset(reader.nulls), reader.problems)


def _refusal(err: Exception, text: str, source: str) -> SettingsError:
    """Return why text is no YAML that we read."""
    match err:
        case yaml.MarkedYAMLError():
            is_open = any(sign in str(err.problem) for sign in _UNCLOSED)
            # What is not closed is reported at the end of the file; it begins at the context.
            mark = (err.context_mark if is_open else err.problem_mark) or err.problem_mark
            return fault(source, _syntax_hint(err), mark.line + 1 if mark else None)
        case yaml.reader.ReaderError():
            line = text.count("\n", 0, int(err.position)) + 1
            sign = chr(int(err.character))
            return fault(source, f"it holds the control character {sign!r}; remove it", line)
        case RecursionError():
            return fault(source, "it is nested too deeply; flatten it")
        case _TooManyValuesError():
            return fault(source, f"its aliases stand for more than {_MAX_VALUES} values; use fewer")
        case ValueError() | OverflowError():  # the parser lets these through
            words = "it is not YAML: a quoted text holds an escape that is no character"
            return fault(source, words)
        case _:
            return fault(source, f"it is not YAML: {err}")


class _TooManyValuesError(Exception):
    """The file is a bomb, or absurdly long."""


class _Composer(yaml.SafeLoader):
    """Composes nodes; every unquoted scalar stays text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, object]]] = {}  # noqa: RUF012  # of the base


class _Reader:
    """Turns nodes into values."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.nulls: set[Path] = set()
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._count = 0

    def value(self, node: Node, path: Path) -> object:
        """Return the value of a node and note the lines of everything in it."""
        self._count += 1
        if self._count > _MAX_VALUES:
            raise _TooManyValuesError
        self.lines.setdefault(path, node.start_mark.line + 1)
        if node.tag not in _TAGS:
            self._note(path, node, f"the tag {node.tag} is not known here; remove it")
            return None
        if isinstance(node, ScalarNode):
            value = _scalar(node)
            if value is None:
                self.nulls.add(path)
            return value
        if id(node) in self._open:
            self._note(path, node, "an alias that holds itself; write the value out")
            return None
        self._open.add(id(node))
        inner = self._inner(node, path)
        self._open.discard(id(node))
        return inner

    def _inner(self, node: Node, path: Path) -> object:
        return (
            self._mapping(node, path) if isinstance(node, MappingNode) else self._list(node, path)
        )

    def _list(self, node: Node, path: Path) -> list[object]:
        assert isinstance(node, SequenceNode)  # noqa: S101  # YAML has three kinds of node
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._note(path, key_node, "a key must be a word; write `key: value`")
            elif _is_merge(key_node):
                continue
            elif key_node.value in found:
                first = self.lines[*path, key_node.value]
                text = f"the key {key_node.value!r} is here twice (first on line {first}); keep one"
                self._note((*path, key_node.value), key_node, text)
            else:
                self.lines.setdefault((*path, key_node.value), key_node.start_mark.line + 1)
                found[key_node.value] = self.value(value_node, (*path, key_node.value))
        return self._merged(node, path) | found

    def _merged(self, node: MappingNode, path: Path) -> dict[str, object]:
        """Return what `<<: *anchor` brings; a key written out wins over it."""
        merged: dict[str, object] = {}
        for source in _merge_sources(node):
            if not isinstance(source, MappingNode):
                self._note(path, source, "`<<` takes a mapping, such as `<<: *name`")
                continue
            value = self.value(source, path)
            merged = (value if isinstance(value, dict) else {}) | merged
        return merged

    def _note(self, path: Path, node: Node, text: str) -> None:
        self.problems.append(Problem(path=path, text=text, line=node.start_mark.line + 1))


def _is_merge(key: ScalarNode) -> bool:
    return key.value == _MERGE and key.style is None


def _merge_sources(node: MappingNode) -> Iterator[Node]:
    for key_node, value_node in node.value:
        if isinstance(key_node, ScalarNode) and _is_merge(key_node):
            yield from value_node.value if isinstance(value_node, SequenceNode) else [value_node]


def _scalar(node: ScalarNode) -> str | None:
    if node.style is not None:
        return str(node.value)
    return None if is_null(node.value) else Plain(node.value)


def _syntax_hint(err: yaml.MarkedYAMLError) -> str:
    problem = " ".join(str(err.problem or err.context or err).split())
    text = f"{err.context or ''} {problem} {err.note or ''}"
    known = next((hint for sign, hint in _HINTS.items() if sign in text), "")
    return f"it is not YAML: {known}" if known else f"it is not YAML: {problem}"

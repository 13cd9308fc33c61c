"""Reads a YAML file into plain values and remembers the line of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import yaml
import yaml.reader
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hybrid.settings.problem import Path, Problem, fault
from hybrid.settings.scalars import Plain, is_null
from hybrid.settings.textfile import read_text

_MAX_VALUES = 50_000  # an alias can stand for a tree: a few lines may mean billions of values
_MERGE = "<<"
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)


@dataclass
class Document:
    """A file's values, by the words it uses.

    Attributes:
        content: Mappings, lists, text (`Plain` when unquoted) and `None`.
        lines: The line of each value, by path.
        problems: What is wrong with the file as YAML that does not stop us reading it.
    """

    content: dict[str, object] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
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
    try:
        root = _Composer(text).get_single_node()
        reader = _Reader()
        content = reader.value(root, ()) if root is not None else None
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        raise fault(source, _syntax_hint(err), mark.line + 1 if mark else None) from err
    except yaml.reader.ReaderError as err:
        line = text.count("\n", 0, int(err.position)) + 1
        hint = f"it holds the control character {chr(int(err.character))!r}; remove it"
        raise fault(source, hint, line) from err
    except RecursionError as err:
        raise fault(source, "it is nested too deeply; flatten it") from err
    except _TooManyValuesError as err:
        raise fault(source, f"its aliases stand for more than {_MAX_VALUES} values") from err
    except (yaml.YAMLError, ValueError, OverflowError) as err:
        raise fault(source, f"it is not YAML: {err}") from err
    if content is None:
        raise fault(
            source, "it is empty; begin with `name: my-cluster`, or copy configs/local.yaml"
        )
    if not isinstance(content, dict):
        kind = "a list" if isinstance(content, list) else "a single value"
        raise fault(source, f"it holds {kind}; write keys such as `name: my-cluster` at the top", 1)
    return Document(content=content, lines=reader.lines, problems=reader.problems)


class _TooManyValuesError(Exception):
    """The file is a bomb, or absurdly long."""


class _Composer(yaml.SafeLoader):
    """Composes nodes; every unquoted scalar stays text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, object]]] = {}  # noqa: RUF012  # of the base


class _Reader:
    """Turns nodes into values."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
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
            return _scalar(node)
        if id(node) in self._open:
            self._note(path, node, "an alias that holds itself; write the value out")
            return None
        self._open.add(id(node))
        value = (
            self._mapping(node, path) if isinstance(node, MappingNode) else self._list(node, path)
        )
        self._open.discard(id(node))
        return value

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
    hints = {
        "\\t": "a tab where YAML allows only spaces; indent with spaces",
        "mapping values are not allowed here": "a second ': ' on a line, or wrong indentation; "
        "put quotes around a value that holds ': '",
        "could not find expected ':'": "a line without ': ' after its key, or an open quote",
        "expected the node content": "a value begins with a sign that YAML keeps for itself; "
        "put quotes around it",
        "expected <block end>": "wrong indentation; keys of one mapping begin in one column",
        "expected a single document": "a second document (`---`); keep one in a file",
        "found unexpected end of stream": "a quote or bracket is not closed",
        "undefined alias": "an alias (`*name`) without its anchor (`&name`) above it",
    }
    text = f"{err.context or ''} {problem} {err.note or ''}"
    known = next((hint for sign, hint in hints.items() if sign in text), "")
    return f"it is not YAML: {known}" if known else f"it is not YAML: {problem}"

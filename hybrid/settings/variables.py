"""Environment variables that override a configuration file."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from functools import cache

from hybrid.settings.catalogue import keys
from hybrid.settings.problem import Path, Problem, path_text
from hybrid.settings.scalars import Plain, is_null

_PREFIX = "HYBRID_"
LEDGER_URL = "HYBRID_LEDGER_URL"
CONFIG = "HYBRID_CONFIG"
HOME = "HYBRID_HOME"
TRACES = "HYBRID_TRACES"
_NOT_SETTINGS = frozenset({CONFIG, HOME, TRACES})


def environment() -> Mapping[str, str]:
    """Return the variables of this process; nothing else in the program reads them."""
    return dict(os.environ)


@cache
def variables() -> Mapping[str, tuple[str, ...]]:
    """Return every variable that sets a value, and which one.

    `HYBRID_` and the path in capitals, with two underscores between its parts:
    `HYBRID_CONTROLLER__PORT` sets `controller.port`. Lists cannot be set this way. The ledger
    alone has a name of its own, since its password may come in no other way.
    """
    found = {_PREFIX + "__".join(key.path).upper(): key.path for key in keys() if key.is_single}
    ledger = ("controller", "ledger")
    del found[_PREFIX + "__".join(ledger).upper()]
    return {**found, LEDGER_URL: ledger}


def overrides(env: Mapping[str, str]) -> dict[Path, tuple[str, str | None]]:
    """Return the variable and the text of every value that `env` sets.

    An empty variable sets nothing; `null` sets the default.
    """
    return {
        path: (name, None if is_null(env[name]) else Plain(env[name]))
        for name, path in variables().items()
        if env.get(name)
    }


def unknown_variables(env: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each variable that looks like a setting and is none.

    Other programs may have variables that begin with `HYBRID_`; those are left alone unless
    they have two underscores inside or are nearly one of ours.
    """
    known = [name.removeprefix(_PREFIX) for name in (*variables(), *_NOT_SETTINGS)]
    for name in sorted(env):
        word = name.removeprefix(_PREFIX)
        if word == name or word in known or not env[name]:
            continue
        close = difflib.get_close_matches(word, known, n=1, cutoff=0.85)
        if not close and "__" not in name:
            continue
        hint = f"did you mean {_PREFIX}{close[0]}?" if close else "see `hybrid config env` for all"
        yield Problem(path=(), text=f"this variable sets nothing; {hint}", origin=name)


def with_value(content: Mapping[str, object], path: Path, value: object) -> dict[str, object]:
    """Return `content` with `value` at `path`; mappings on the way are made as needed."""
    key, rest = str(path[0]), path[1:]
    if not rest:
        return {**content, key: value}
    below = content.get(key)
    if below is not None and not isinstance(below, Mapping):
        return dict(content)  # the file has something else there, and its problem is reported
    return {**content, key: with_value(below or {}, rest, value)}


def without(content: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return `content` without what is at `path`; a list on the way goes as a whole."""
    key, rest = str(path[0]), path[1:]
    below = content.get(key)
    if rest and isinstance(below, Mapping):
        return {**content, key: without(below, rest)}
    return {name: value for name, value in content.items() if name != key}


def describe_variables() -> list[tuple[str, str]]:
    """Return every variable and the path it sets, for people."""
    return [(name, path_text(path)) for name, path in sorted(variables().items())]

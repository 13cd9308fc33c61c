"""Lays a schema over values, at any depth: attributes, nested attributes and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hybrid.terraform.plugin import dynamic
from hybrid.terraform.plugin.diagnostics import Key
from hybrid.terraform.plugin.schema import Schema, Type, Values, attributes_of, blocks_of
from hybrid.terraform.plugin.values import UNKNOWN, is_known, number

_Steps = tuple[str | int | Key, ...]


def _each(mode: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a nested value with `change` made to each of its objects."""
    if not is_known(value):
        return value
    if mode in ("list", "set"):
        return [change(item) if is_known(item) else item for item in value]
    if mode == "map":
        return {key: change(item) if is_known(item) else item for key, item in value.items()}
    return change(value)


def _deep(content: Schema, values: Mapping[str, Any], leaf: Callable[[Schema, Any], Any]) -> Values:
    """Return an object with `leaf` applied to each attribute, innermost first."""

    def inside(inner: Schema) -> Callable[[Any], Any]:
        return lambda value: _deep(inner, value, leaf)

    changed: Values = {}
    for name, described in attributes_of(content).items():
        value = values.get(name)
        if kind := described.get("nested_type"):
            value = _each(kind["nesting_mode"], value, inside({"attributes": kind["attributes"]}))
        changed[name] = leaf(described, value)
    for name, nested in blocks_of(content).items():
        mode, value = nested["nesting_mode"], values.get(name)
        if value is None and mode in ("list", "set", "map"):
            value = {} if mode == "map" else []  # a block that is absent is empty, not null
        changed[name] = _each(mode, value, inside(nested["block"]))
    return changed


def complete(content: Schema, values: Mapping[str, Any] | None) -> Values:
    """Return an object as the wire wants it: every attribute there, null where none was given.

    What the schema does not know is left out; numbers that came as text are numbers.
    """
    return _deep(content, values or {}, lambda a, v: _typed(a["type"], v) if "type" in a else v)


def settled(content: Schema, values: Mapping[str, Any]) -> Values:
    """Return an object after `apply`: complete, nothing unknown, nothing write-only."""
    return _deep(content, complete(content, values), _settle)


def _settle(described: Schema, value: Any) -> Any:
    return None if described.get("write_only") else _without_unknown(value)


def _without_unknown(value: Any) -> Any:
    if value is UNKNOWN:
        return None
    if isinstance(value, list):
        return [_without_unknown(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_unknown(item) for key, item in value.items()}
    return value


def mark_unknown(content: Schema, values: Mapping[str, Any]) -> Values:
    """Return the plan of a creation: computed values that nobody gave are unknown, at any depth."""
    return _deep(content, values, lambda a, v: UNKNOWN if a.get("computed") and v is None else v)


def without_write_only(content: Schema, values: Mapping[str, Any]) -> Values:
    """Return a plan as Terraform takes it: a write-only attribute is null there, too."""
    return _deep(content, values, lambda a, v: None if a.get("write_only") else v)


def with_config(
    content: Schema,
    planned: Mapping[str, Any],
    config: Mapping[str, Any] | None,
    choose: Callable[[Schema, Any, Any], Any],
) -> Values:
    """Return a plan with `choose(attribute, planned, configured)` for each attribute."""
    config = config or {}
    changed: Values = dict(planned)
    for name, described in attributes_of(content).items():
        value, given = planned.get(name), config.get(name)
        if kind := described.get("nested_type"):
            inner = {"attributes": kind["attributes"]}
            value = _both(kind["nesting_mode"], inner, value, given, choose)
        changed[name] = choose(described, value, given)
    for name, inner in blocks_of(content).items():
        changed[name] = _both(
            inner["nesting_mode"], inner["block"], planned.get(name), config.get(name), choose
        )
    return changed


def _both(
    mode: str,
    inner: Schema,
    value: Any,
    given: Any,
    choose: Callable[[Schema, Any, Any], Any],
) -> Any:
    if not is_known(value) or not is_known(given):
        return value
    if mode == "set":  # unordered: each item is its own configuration
        return [with_config(inner, v, v, choose) if is_known(v) else v for v in value]
    if mode == "list":
        if len(value) != len(given):
            return value
        pairs = zip(value, given, strict=True)
        return [with_config(inner, v, g, choose) if is_known(v) else v for v, g in pairs]
    if mode == "map":
        return {
            key: with_config(inner, v, given.get(key), choose) if is_known(v) else v
            for key, v in value.items()
        }
    return with_config(inner, value, given, choose)


def with_defaults(described: Schema, planned: Any, given: Any) -> Any:
    """A choice for `with_config`: the default where the configuration has nothing."""
    return described["default"] if given is None and "default" in described else planned


def with_secrets(described: Schema, planned: Any, given: Any) -> Any:
    """A choice for `with_config`: write-only values travel in the configuration alone."""
    return given if described.get("write_only") else planned


def leaves(
    content: Schema, values: Mapping[str, Any], at: _Steps = ()
) -> Iterator[tuple[_Steps, Schema, Any]]:
    """Yield each attribute with its path and its known value, at any depth."""
    for name, described in attributes_of(content).items():
        value = values.get(name)
        if not is_known(value):
            continue
        yield (*at, name), described, value
        if kind := described.get("nested_type"):
            inner = {"attributes": kind["attributes"]}
            yield from _inner_leaves(kind["nesting_mode"], inner, value, (*at, name))
    for name, nested in blocks_of(content).items():
        value = values.get(name)
        if is_known(value):
            yield from _inner_leaves(nested["nesting_mode"], nested["block"], value, (*at, name))


def _inner_leaves(
    mode: str,
    inner: Schema,
    value: Any,
    at: _Steps,
) -> Iterator[tuple[_Steps, Schema, Any]]:
    if mode in ("list", "set"):
        items: list[tuple[_Steps, Any]] = [((*at, i), item) for i, item in enumerate(value)]
        if mode == "set":  # its items have no number; the whole is shown
            items = [(at, item) for _, item in items]
    elif mode == "map":
        items = [((*at, Key(key)), item) for key, item in value.items()]
    else:
        items = [(at, value)]
    for path, item in items:
        if not is_known(item):
            continue
        for found in leaves(inner, item, path):
            yield (at, found[1], found[2]) if mode == "set" else found


def _typed(type_: Type, value: Any) -> Any:
    """Return a value with numbers as numbers, and objects with every field."""
    if not is_known(value):
        return value
    if type_ == "number":
        return number(value)
    if type_ == "dynamic" and isinstance(value, dict) and set(value) == {"type", "value"}:
        return dynamic.of_state(value)
    if isinstance(type_, str):
        return value
    kind, inner = type_
    if kind in ("list", "set"):
        return [_typed(inner, item) for item in value]
    if kind == "map":
        return {key: _typed(inner, item) for key, item in value.items()}
    if kind == "tuple":
        return [_typed(t, item) for t, item in zip(inner, value, strict=True)]
    return {name: _typed(t, value.get(name)) for name, t in inner.items()}

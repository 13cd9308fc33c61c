"""List filters (AIP-160), as far as they are used: comparisons joined by AND or parentheses."""

from __future__ import annotations

import re
from typing import Any

_TERM = re.compile(
    r"""\s*(?P<open>\()?\s*
    (?P<field>[A-Za-z][\w.\-]*)\s*
    (?P<operator>!=|=|:)\s*
    (?:"(?P<quoted>[^"]*)"|(?P<word>[^\s()"]+))
    \s*(?(open)\))\s*(?:AND\b)?""",
    re.VERBOSE,
)


class FilterError(ValueError):
    """The cloud cannot read this filter."""


def matches(text: str, resource: dict[str, Any]) -> bool:
    """Return whether a resource passes a filter. Raises `FilterError`."""
    place = 0
    is_match = True
    while place < len(text.rstrip()):
        term = _TERM.match(text, place)
        if term is None:
            raise FilterError(f"Invalid list filter expression: {text[place:]!r}.")
        is_match = _holds(term, resource) and is_match
        place = term.end()
    return is_match


def _holds(term: re.Match[str], resource: dict[str, Any]) -> bool:
    wanted = term["word"] if term["quoted"] is None else term["quoted"]
    value = _value(resource, term["field"])
    if term["operator"] == ":" and wanted == "*":
        return value is not None
    if value is None:
        return term["operator"] == "!="
    is_same = str(value).lower() == wanted.lower()  # AIP-160 compares without case
    return is_same if term["operator"] != "!=" else not is_same


def _value(resource: Any, field: str) -> Any:
    head, _, rest = field.partition(".")
    if head == "labels":
        return resource.get("labels", {}).get(rest)
    value = resource.get(head) if isinstance(resource, dict) else None
    return value if not rest else _value(value, rest)

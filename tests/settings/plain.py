"""What an operator may be shown: sentences, and nothing of a program's insides."""

from __future__ import annotations

import re

_INSIDES = re.compile(
    r"\(\?|\\[a-zA-Z.]"  # groups and classes of regular expressions
    r"|\[[^\]\s]*(?:[a-z]-[a-z]|[A-Z]-[A-Z]|0-9)[^\]\s]*\]"
    r"|\{\d+(?:,\d*)?\}|\^"
    r"|[Ii]nput should|[Ss]tring should|[Ii]nputs are|[Pp]attern|[Vv]alidation|__"
    r"|<[a-z]+ |Error\b|None\b|True\b|False\b"
)


def why_not_plain(sentence: str) -> str:
    """Return what is wrong with a sentence about a wrong value; `""` when it is good."""
    if found := _INSIDES.search(sentence):
        return f"it shows {found[0]!r}"
    wrong, semicolon, todo = sentence.partition("; ")
    if not semicolon or not wrong.strip() or not todo.strip():
        return "it does not say what is wrong, then `;`, then what to write"
    return "" if len(sentence) < 500 else "it is too long"

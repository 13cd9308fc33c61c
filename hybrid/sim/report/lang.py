"""Sentences in the language of the reader, by their English form."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hybrid.sim.report.chinese import CHINESE

Lang: TypeAlias = Literal["en", "zh"]


class Words:
    """Says a sentence in one language.

    Args:
        lang: Which. What has no translation stays English, and is noted.

    Attributes:
        missing: Sentences that stayed English.
    """

    def __init__(self, lang: Lang) -> None:
        self.lang = lang
        self.missing: set[str] = set()

    def __call__(self, text: str, **facts: object) -> str:
        """Return a sentence with its facts filled in."""
        if self.lang == "zh":
            if text in CHINESE:
                text = CHINESE[text]
            else:
                self.missing.add(text)
        return text.format(**facts) if facts else text

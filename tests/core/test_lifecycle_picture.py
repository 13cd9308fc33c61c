"""The picture of the states in docs/architecture.md is the table of legal changes."""

from __future__ import annotations

import re
from pathlib import Path

from hybrid.core.lifecycle import TRANSITIONS

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_picture_of_the_states_shows_every_legal_change_and_no_other() -> None:
    _, _, picture = PAGE.read_text().partition("stateDiagram-v2")
    drawn = set(re.findall(r"^  (\w+) --> (\w+)", picture.partition("```")[0], re.MULTILINE))

    assert drawn == {(before.value, after.value) for (before, _), after in TRANSITIONS.items()}

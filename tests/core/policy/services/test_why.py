"""The page about services lists every code, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from hybrid.core.policy.services import Why

PAGE = Path(__file__).parents[4] / "docs" / "services.md"


def test_every_code_for_services_is_on_the_page_and_no_other() -> None:
    listed = re.findall(r"^\| `([a-z_]+)` \|", PAGE.read_text(), re.MULTILINE)

    assert listed == [code.value for code in Why]

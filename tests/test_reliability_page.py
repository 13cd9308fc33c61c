"""The page on reliability names tests that exist, for every item of the contract."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
ITEMS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests of a file, those inside classes too."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=str)
def test_a_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in names_in(path)


def test_every_item_of_the_contract_has_its_row_with_a_promise_and_a_test() -> None:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in ITEMS]

    assert [int(row[0]) for row in cells] == list(range(1, 38))
    assert all(len(row) == 4 for row in cells), "a bar inside a cell would hide the rest of it"
    assert all(row[1] and "::" in row[2] for row in cells)

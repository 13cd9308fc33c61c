"""The tables in the modules' READMEs say what the .tf files say."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.workspace import ROOT, TERRAFORM

MODULES = sorted(path for path in (TERRAFORM / "modules").iterdir() if path.is_dir())
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "terraform_docs.py"))
update: Callable[..., bool] = SCRIPT["update"]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_modules_tables_are_current(module: Path) -> None:
    assert not update(module / "README.md", is_check=True), "run scripts/terraform_docs.py"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_every_argument_and_output_says_what_it_is(module: Path) -> None:
    content = SCRIPT["parsed"](module)

    for kind in ("variable", "output"):
        for name, item in content[kind].items():
            assert item.get("description", "").endswith("."), f"{kind} {name}"
    assert all(item.get("type") for item in content["variable"].values())


def test_an_argument_that_is_new_makes_the_table_stale(tmp_path: Path) -> None:
    module = shutil.copytree(TERRAFORM / "modules" / "gcp", tmp_path / "gcp")
    with (module / "variables.tf").open("a", encoding="utf-8") as opened:
        opened.write('variable "new" {\n  description = "A | B."\n  type = number\n}\n')

    assert update(module / "README.md", is_check=False)

    text = (module / "README.md").read_text(encoding="utf-8")
    assert "| `new` | `number` | required | A \\| B. |\n" in text
    assert not update(module / "README.md", is_check=True)


def test_a_readme_without_a_place_for_its_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# A module\n", encoding="utf-8")

    with pytest.raises(ValueError, match="where the tables go"):
        update(tmp_path / "README.md", is_check=True)

#!/usr/bin/env python
"""Writes the tables of arguments and outputs in the READMEs of terraform/modules.

    scripts/terraform_docs.py            write them anew
    scripts/terraform_docs.py --check    only say which are not what the .tf files say

A README says where its tables go by two comments; what is between them is replaced.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pygohcl

MODULES = Path(__file__).parents[1] / "terraform" / "modules"
BEGIN = "<!-- made by scripts/terraform_docs.py, and compared by a test -->"
END = "<!-- end of what is made -->"

_FIELD = re.compile(r"(?<=[\w)}]) (?=\w+ = )")


def main() -> int:
    """Write the READMEs, or compare them. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args().check
    stale = [
        path for path in sorted(MODULES.glob("*/README.md")) if update(path, is_check=is_check)
    ]
    for path in stale:
        print(f"{path.relative_to(MODULES.parents[1])}: {'is stale' if is_check else 'written'}")
    return 1 if is_check and stale else 0


def update(readme: Path, *, is_check: bool) -> bool:
    """Write the tables of a module's README. Returns whether they were other ones.

    Raises:
        ValueError: The README does not say where they go.
    """
    text = readme.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme}: write {BEGIN} and {END} where the tables go")
    made = f"{head}{BEGIN}\n\n{tables(readme.parent)}\n{END}{tail}"
    if made != text and not is_check:
        readme.write_text(made, encoding="utf-8")
    return made != text


def tables(module: Path) -> str:
    """Return what a module needs, takes, gives and makes, as Markdown."""
    content = parsed(module)
    lines = ["### Needs", "", "| What | Version |", "|---|---|"]
    terraform = content.get("terraform", {})
    lines.append(f"| Terraform | `{terraform['required_version']}` |")
    for name, provider in sorted(terraform.get("required_providers", {}).items()):
        lines.append(f"| provider {name} (`{provider['source']}`) | `{provider['version']}` |")
    lines += [
        "",
        "### Arguments",
        "",
        "| Argument | Type | Default | What it says |",
        "|---|---|---|---|",
    ]
    lines += [_argument(name, item) for name, item in content.get("variable", {}).items()]
    lines += ["", "### Outputs", "", "| Output | What it is |", "|---|---|"]
    for name, item in content.get("output", {}).items():
        secret = " Sensitive." if item.get("sensitive") else ""
        lines.append(f"| `{name}` | {_cell(item['description'])}{secret} |")
    made = [f"`{kind}`" for kind in sorted(content.get("resource", {}))]
    lines += ["", f"### Objects ({len(made)} types)", "", ", ".join(made) + ".", ""]
    return "\n".join(lines)


def parsed(module: Path) -> dict[str, Any]:
    """Return all blocks of a module, its files put together in the order of their names."""
    content: dict[str, Any] = {}
    for path in sorted(module.glob("*.tf")):
        for kind, block in pygohcl.loads(path.read_text(encoding="utf-8")).items():
            merged = content.setdefault(kind, {})
            if isinstance(block, Mapping):
                for name, inner in block.items():
                    known = merged.get(name)
                    is_both = isinstance(known, Mapping) and isinstance(inner, Mapping)
                    merged[name] = {**known, **inner} if is_both else inner
    for kind, name in (("variable", "variables.tf"), ("output", "outputs.tf")):
        # As they stand in the file: the parser sorts them.
        text = (module / name).read_text(encoding="utf-8")
        order = re.findall(rf'^{kind} "(\w+)"', text, re.MULTILINE)
        items = content.get(kind, {}).items()
        content[kind] = dict(sorted(items, key=lambda item, order=order: order.index(item[0])))
    return content


def _argument(name: str, item: Mapping[str, Any]) -> str:
    kind = _FIELD.sub(", ", " ".join(str(item["type"]).split()))
    default = f"`{json.dumps(item['default'])}`" if "default" in item else "required"
    marks = "".join(
        f" {word}"
        for key, word in (("sensitive", "Sensitive."), ("ephemeral", "Ephemeral."))
        if item.get(key)
    )
    return (
        f"| `{name}` | `{_cell(kind)}` | {_cell(default)} | {_cell(item['description'])}{marks} |"
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())

"""Writes `schemas/*.json`: of the recovered provider schemas, what our modules use.

    python -m tests.terraform.stub.extract FOLDER

FOLDER has `aws.full.json.gz`, `google.full.json.gz` and `baidu.full.json.gz`: names, types and
flags of every attribute, recovered from the generated bindings (Python packages
cdktn-provider-aws 25.8.1 and cdktn-provider-google 21.1.0), or the schema literals (baiducloud),
of the real providers. Run it when a module uses a new type of resource.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.terraform.workspace import TERRAFORM

SCHEMAS = Path(__file__).parent / "schemas"
SOURCES: Mapping[str, tuple[str, str, str]] = {
    "aws": ("aws", "hashicorp/aws 6.69.1", "cdktn-provider-aws 25.8.1"),
    "google": ("google", "hashicorp/google 8.7.0", "cdktn-provider-google 21.1.0"),
    "baiducloud": ("baidu", "baidubce/baiducloud 1.23.5", "its own source"),
}
"""Name of a provider -> name of the file, the provider's version, and what it was read from."""

_USE = re.compile(r'^\s*(resource|data)\s+"(\w+)"\s+"', re.MULTILINE)
# Terraform's own words in a provider block, not the provider's.
_RESERVED = ("alias", "version")


def used(folder: Path = TERRAFORM) -> dict[str, set[str]]:
    """Return the types of resources and data sources that HCL in a folder names."""
    found: dict[str, set[str]] = {"resource": set(), "data": set()}
    for path in [*folder.rglob("*.tf"), *folder.rglob("*.tftest.hcl")]:
        for kind, name in _USE.findall(path.read_text(encoding="utf-8")):
            found[kind].add(name)
    return found


def extract(full: Mapping[str, Any], name: str, wanted: Mapping[str, set[str]]) -> dict[str, Any]:
    """Return the part of a provider's schemas that is wanted.

    Raises:
        KeyError: The provider has no such type.
    """
    _, version, source = SOURCES[name]
    provider = full["provider"] or {"block": {"attributes": {}}}
    attributes = {
        key: value
        for key, value in provider["block"].get("attributes", {}).items()
        if key not in _RESERVED
    }
    blocks = provider["block"].get("block_types", {})
    head = {
        "about": f"Schemas of {version}, MPL-2.0, recovered from {source}; see extract.py.",
        "provider": {"block": {"attributes": attributes, "block_types": blocks}},
    }
    return head | {
        kind: {t: _forgetful(full[kind][t]) for t in sorted(types) if t.startswith(f"{name}_")}
        for kind, types in wanted.items()
    }


def _forgetful(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose write-only arguments say so: the bindings know them by name only."""
    attributes = schema["block"].get("attributes", {})
    kept = {
        key: {**value, "write_only": True} if key.endswith("_wo") else value
        for key, value in attributes.items()
    }
    return {**schema, "block": {**schema["block"], "attributes": kept}}


def text(schemas: Mapping[str, Any]) -> str:
    """Return schemas as JSON, one type a line."""

    def small(value: object) -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    parts = [f'"about":{small(schemas["about"])}', f'"provider":{small(schemas["provider"])}']
    for kind in ("resource", "data"):
        lines = ",\n".join(f"{small(name)}:{small(s)}" for name, s in schemas[kind].items())
        parts.append(f'"{kind}":{{\n{lines}\n}}')
    return "{" + ",\n".join(parts) + "}\n"


def main(folder: Path) -> None:
    """Write the schemas of all providers."""
    wanted = used()
    for name, (file, _, _) in SOURCES.items():
        with gzip.open(folder / f"{file}.full.json.gz", "rt", encoding="utf-8") as opened:
            full = json.load(opened)
        path = SCHEMAS / f"{name}.json"
        path.write_text(text(extract(full, name, wanted)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

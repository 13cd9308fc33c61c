"""Terraform's plugin protocol, version 6, for providers written in Python.

A provider subclasses `Provider`, `Resource` and `DataSource`, describes itself by schemas in
the shape of `terraform providers schema -json`, and calls `serve`. Nothing heavy is imported:
Terraform starts a provider three to five times a command.
"""

from __future__ import annotations

from hybrid.terraform.plugin import dynamic
from hybrid.terraform.plugin.diagnostics import Diagnostics, Key
from hybrid.terraform.plugin.resource import DataSource, Provider, Resource
from hybrid.terraform.plugin.schema import (
    attribute,
    block,
    make_schema,
    nested,
    nested_block,
    of_file,
)
from hybrid.terraform.plugin.server import serve
from hybrid.terraform.plugin.values import UNKNOWN, is_known
from hybrid.terraform.plugin.walk import complete, mark_unknown

__all__ = [
    "UNKNOWN",
    "DataSource",
    "Diagnostics",
    "Key",
    "Provider",
    "Resource",
    "attribute",
    "block",
    "complete",
    "dynamic",
    "is_known",
    "make_schema",
    "mark_unknown",
    "nested",
    "nested_block",
    "of_file",
    "serve",
]

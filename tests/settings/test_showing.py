"""Tests of `config show`: every value, as a file could hold it, with its origin."""

from __future__ import annotations

from pathlib import Path

import yaml

from hybrid.settings import Settings, dump, explain, load, packaged
from hybrid.settings.catalogue import keys
from tests.settings.writing import load_text


def test_explain_tells_the_origin_of_every_value(tmp_path: Path) -> None:
    text = "name: a\nonprem:\n  hosts:\n    - name: b\n      accelerators: GPU:4\n"

    rows = explain(load_text(tmp_path, text, {"HYBRID_LEASE__RENEW": "60s"}))

    origins = {row.path: (row.value, row.origin.replace(f"{tmp_path}/", "")) for row in rows}
    assert origins["name"] == ("a", "hybrid.yaml:1")
    assert origins["onprem.hosts[0].accelerators"] == ("GPU:4", "hybrid.yaml:5")
    assert origins["onprem.hosts[0].cpus"] == (None, "default")
    assert origins["lease.renew"] == ("1m", "HYBRID_LEASE__RENEW")
    assert origins["lease.length"] == ("30m", "default")
    assert origins["clouds"] == (None, "default")


def test_a_key_written_as_null_has_its_default(tmp_path: Path) -> None:
    rows = explain(load_text(tmp_path, "name: a\nhead:\n  cpus: null\n"))

    assert ("head.cpus", 1, "default") in rows


def test_a_dump_is_read_back_to_the_same_settings(tmp_path: Path) -> None:
    settings = load(packaged("local.yaml"), {"HOME": "/h"}, providers=("local",))

    again = load_text(tmp_path, yaml.safe_dump(dump(settings)))

    assert dump(again) == dump(settings)


def test_a_dump_holds_every_key_that_is_in_no_list() -> None:
    content = dump(Settings(name="a"))

    for key in keys():
        if key.is_single and key.path[0] != "clouds":
            inner: object = content
            for part in key.path:
                assert isinstance(inner, dict)
                inner = inner[part]

"""Writes a configuration and loads it, for tests that are about one line of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hybrid.settings import Settings, SettingsError, load

CLOUD = """
clouds:
  any_of:
    - {infra: local, accelerators: GPU:4, usd_per_hour: 2.40}
budget: {nodes: 2, usd_per_day: 20}
"""


def load_text(
    folder: Path,
    text: str,
    env: Mapping[str, str] | None = None,
    providers: tuple[str, ...] = ("local", "tide"),
) -> Settings:
    """Return the settings in `text`, which is written to `hybrid.yaml` in `folder`."""
    file = folder / "hybrid.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, {"HOME": "/h", **(env or {})}, providers=providers)


def problems(folder: Path, text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the problems of `text`, one line each, without the folder."""
    with pytest.raises(SettingsError) as caught:
        load_text(folder, text, env)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems)
    return [line.replace(f"{folder}/", "") for line in lines]


def problem(folder: Path, text: str, env: Mapping[str, str] | None = None) -> str:
    """Return the only problem of `text`."""
    found = problems(folder, text, env)
    assert len(found) == 1, found
    return found[0]

"""Fixtures of the Terraform tests."""

from __future__ import annotations

import pytest

from tests.terraform.workspace import Mirror, require_terraform


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """Return the stub providers, under the real ones' addresses."""
    require_terraform()
    return Mirror.make(tmp_path_factory.mktemp("terraform"))

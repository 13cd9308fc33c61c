"""Fixtures of the Terraform tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulators.aws import AwsEmulator
from tests.terraform.account import CREDENTIALS
from tests.terraform.workspace import Mirror, Workspace, require_terraform


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """Return the stub providers, under the real ones' addresses."""
    require_terraform()
    return Mirror.make(tmp_path_factory.mktemp("terraform"))


@pytest.fixture(scope="session")
def aws_module(mirror: Mirror, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return the AWS module, initialised, with credentials of nobody; to be copied, not changed."""
    workspace = Workspace.of(tmp_path_factory.mktemp("aws") / "copy", mirror, "modules/aws").init()
    workspace.env = dict(CREDENTIALS)
    return workspace


@pytest.fixture
def emulator() -> Iterator[AwsEmulator]:
    """Yield the emulated AWS."""
    emulator = AwsEmulator()
    yield emulator
    emulator.stop()

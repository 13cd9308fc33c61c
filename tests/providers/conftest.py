"""A cloud for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.providers.local_cloud import LocalCloud, local_cloud

if TYPE_CHECKING:
    from tests.providers.aws_cloud import AwsAccount, AwsCloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[LocalCloud]:
    with local_cloud(tmp_path / "local") as made:
        yield made


@pytest.fixture(scope="session")
def aws_account() -> Iterator[AwsAccount]:
    """Yield one emulator for all tests, which takes seconds to load."""
    from tests.providers.aws_cloud import AwsAccount

    account = AwsAccount()
    try:
        yield account
    finally:
        account.close()


@pytest.fixture
def aws(aws_account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> AwsCloud:
    """Return an AWS account with nothing in it."""
    from tests.providers.aws_cloud import AwsCloud, set_environment

    set_environment(monkeypatch)
    aws_account.emulator.reset()
    return AwsCloud(aws_account.emulator, aws_account.client)

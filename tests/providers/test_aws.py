"""AWS against its emulator: the port's contract, for one zone and for a whole region."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.aws_cloud import POOL, AwsCloud, aws_account
from tests.providers.contract import ProviderContract

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="account")
def _account() -> Iterator[object]:
    with aws_account() as account:
        yield account


@pytest.fixture
def cloud(account: tuple) -> AwsCloud:
    emulator, client = account
    emulator.reset()
    return AwsCloud(emulator, client)


class TestContract(ProviderContract):
    """Every promise of the port, for a pool of one zone: RunInstances."""


class TestFleetContract(ProviderContract):
    """The same for a pool of a whole region: CreateFleet."""

    @pytest.fixture
    def cloud(self, cloud: AwsCloud) -> AwsCloud:
        cloud.pools = [POOL | {"infra": "aws/us-east-1"}]
        return cloud

"""Baidu AI Cloud: the port's contract, with the real SDK and an emulated account."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.core.errors import (
    ProviderError,
    TransientError,
)
from tests.emulators.baidu import Fault
from tests.providers.baidu_cloud import (
    EXPIRY,
    BaiduCloud,
    baidu_cloud,
)
from tests.providers.contract import ProviderContract, launch, listed, live, make_spec


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    with baidu_cloud(monkeypatch) as made:
        yield made


class TestContract(ProviderContract):
    """Every promise of the port."""

    def test_an_instance_without_an_expiry_is_shown_so_and_extend_gives_it_one(
        self, cloud: BaiduCloud
    ) -> None:
        """A crash between the two calls of a launch; nobody calls `launch` again."""
        provider, spec = cloud.provider(), make_spec(cloud)
        cloud.emulator.faults.append(Fault("drop", call=EXPIRY))
        with pytest.raises(TransientError):
            launch(provider, spec)
        (provider_id,) = live(provider)
        assert listed(provider)[provider_id].expires_at_s is None
        until_s = time.time() + 1800

        cloud.provider().extend([provider_id], until_s=until_s)

        assert listed(provider)[provider_id].expires_at_s == pytest.approx(until_s, abs=1.0)


def test_the_sdk_is_loaded_at_the_first_call_only() -> None:
    code = (
        "import sys; from providers.baidu import make; from hybrid.core.ports import *;"
        "from hybrid.adapters.clock import SystemClock;"
        "context = ProviderContext('c', 'lab', '', '', SystemClock());"
        "pool = dict(infra='baidu/bj', instance_type='bcc.g5.c2m8', usd_per_hour=1);"
        "print(len(make('baidu', dict(image='m-1', pools=[pool]), context).offers()));"
        "print([name for name in sys.modules if name.startswith('baidubce')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )

    assert done.stdout.split("\n")[:2] == ["1", "[]"], done.stderr


def test_a_missing_sdk_is_told_with_its_cure(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "baidubce.services.bcc.bcc_client", None)

    with pytest.raises(ProviderError, match=r"pip install 'hybrid-burst\[baidu\]'"):
        cloud.provider().list_instances()

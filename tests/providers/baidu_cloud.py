"""An account of Baidu AI Cloud on loopback, as the provider contract needs it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.core.ports import ProviderContext
from providers.baidu import BaiduProvider, make
from providers.baidu.credentials import VARIABLES
from tests.emulators.baidu import ACCESS_KEY, SECRET_KEY, BaiduEmulator, Fault, start
from tests.emulators.baidu.server import Request

SPEC = "bcc.lgn1.c12m40.1p40"
POOL: dict[str, Any] = {
    "infra": "baidu/bj/cn-bj-d",
    "instance_type": SPEC,
    "cny_per_hour": 7.2,
}
ACCOUNT: dict[str, Any] = {
    "exchange": {"cny_per_usd": 7.2, "as_of": "2026-11-27", "source": "a test"},
    "image": "m-gpu1",
}
CREATE = "POST /v2/instanceBySpec"
EXPIRY = "PUT /v2/instance/"
RELEASE = "POST /v2/instance/"


class BaiduCloud:
    """See `tests.providers.contract.Cloud`."""

    controller_url = "http://127.0.0.1:1"

    def __init__(self, emulator: BaiduEmulator) -> None:
        self.cluster_id = f"c-{uuid.uuid4().hex[:8]}"
        self.emulator = emulator
        self.pools: list[dict[str, Any]] = [dict(POOL)]
        self.account: dict[str, Any] = ACCOUNT | {"endpoints": {"bj": emulator.url}}

    @property
    def bcc(self) -> Any:
        """The account itself, to be changed by a test."""
        return self.emulator.cloud

    def provider(self, cluster_id: str = "") -> BaiduProvider:
        context = ProviderContext(
            cluster_id=cluster_id or self.cluster_id,
            cluster_name="lab",
            state_dir="/nowhere",
            ray_dir="/nowhere",
            clock=SystemClock(),
        )
        return make("baidu", self.account | {"pools": self.pools}, context)

    def lose_next_answer(self) -> BaiduProvider:
        self.emulator.faults.append(Fault("lose", call=CREATE))
        return self.provider()

    def sell_out(self) -> None:
        self.bcc.stock = {pool["instance_type"]: 0 for pool in self.pools}

    def create_call(self) -> Request:
        """Return the one create call that was made."""
        (call,) = self.emulator.calls(CREATE)
        return call

    def tags(self, provider_id: str) -> dict[str, str]:
        tags: dict[str, str] = self.bcc.instances[bcc_id(provider_id)].tags
        return tags


@contextmanager
def baidu_cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    """Yield an account with nothing in it, and its keys in the environment."""
    for name, value in zip(VARIABLES, (ACCESS_KEY, SECRET_KEY, ""), strict=True):
        monkeypatch.setenv(name, value)
    emulator = start()
    try:
        yield BaiduCloud(emulator)
    finally:
        emulator.stop()


def bcc_id(provider_id: str) -> str:
    """Return Baidu's own id."""
    return provider_id.partition("/")[2]

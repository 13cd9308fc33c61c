"""The provider that docs/adding-a-provider.md shows, run from that page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import CapacityError, NotFoundError
from hybrid.core.models import CloudState, LaunchSpec
from hybrid.core.ports import MakeProvider, Provider, ProviderContext
from tests.world.clock import VirtualClock

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-provider.md"


@pytest.fixture
def provider() -> Provider:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    make: MakeProvider = names["make"]
    context = ProviderContext(
        cluster_id="c-1",
        cluster_name="test",
        state_dir="/nowhere",
        ray_dir="/nowhere",
        clock=VirtualClock(),
    )
    return make("shelf", {"stock": 2, "pools": []}, context)


def launch(provider: Provider, number: int) -> str:
    spec = LaunchSpec(
        cluster_id="c-1",
        instance_id=f"i-{number}",
        epoch=1,
        head_address="127.0.0.1:1",
        controller_url="http://127.0.0.1:2",
        labels={},
        expires_at_s=2e9,
        ray_version="2",
        python_version="3",
    )
    [offer] = provider.offers()
    return provider.launch(offer, spec, token=f"t-{number}", join_token="j")


def test_one_token_rents_once_and_says_whose_it_is(provider: Provider) -> None:
    first, again = launch(provider, 1), launch(provider, 1)

    assert first == again
    [listed] = provider.list_instances()
    assert (listed.instance_id, listed.provider_id) == ("i-1", first)


def test_stock_runs_out_and_comes_back(provider: Provider) -> None:
    first = launch(provider, 1)
    launch(provider, 2)
    with pytest.raises(CapacityError):
        launch(provider, 3)

    provider.terminate([first])

    assert provider.offers()[0].stock_count == 1
    assert launch(provider, 3)


def test_what_is_ended_is_gone_and_what_never_was_is_not_found(provider: Provider) -> None:
    first = launch(provider, 1)
    provider.terminate([first])
    provider.terminate([first])

    assert [c.state for c in provider.list_instances()] == [CloudState.GONE]
    with pytest.raises(NotFoundError):
        provider.terminate(["shelf-9"])
    with pytest.raises(NotFoundError):
        provider.extend(["shelf-9"], until_s=1.0)


def test_an_expiry_moves(provider: Provider) -> None:
    first = launch(provider, 1)

    provider.extend([first], until_s=2.5e9)

    assert provider.list_instances()[0].expires_at_s == 2.5e9

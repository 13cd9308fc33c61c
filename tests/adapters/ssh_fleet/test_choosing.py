"""Which GPUs of a host work may use."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.adapters.ssh_fleet.choosing import choose, described
from hybrid.adapters.ssh_fleet.facts import Gpus
from hybrid.core.quantity import gpu_request
from tests.adapters.ssh_fleet.make import A100, GB10, RTX3070, RTX4090


def gpus(*found: dict[str, Any], **changes: Any) -> Gpus:
    return Gpus.model_validate({"found": found, **changes})


def test_auto_takes_all_and_names_each_type_for_ray() -> None:
    choice = choose(gpus(RTX3070, RTX4090, A100), None, is_auto=True)

    assert choice.shape == {
        "GPU": 3,
        "accelerator_type:RTX-3070": 1,
        "accelerator_type:RTX-4090": 1,
        "accelerator_type:A100": 1,
    }
    assert choice.label == ""
    assert choice.uuids == "GPU-b,GPU-c,GPU-a"


def test_one_type_of_a_mixed_host_is_taken_by_uuid() -> None:
    choice = choose(gpus(RTX3070, RTX4090), gpu_request("RTX-4090:1"))

    assert choice.shape == {"GPU": 1, "accelerator_type:RTX-4090": 1}
    assert choice.label == "RTX-4090"
    assert choice.uuids == "GPU-c"


@pytest.mark.parametrize("text", ["A100:1", "A100-80GB:1", "a100:1", "GPU:1"])
def test_a_type_may_be_written_as_people_do(text: str) -> None:
    assert choose(gpus(A100), gpu_request(text)).uuids == "GPU-a"


def test_a_card_without_a_memory_of_its_own_counts() -> None:
    assert choose(gpus(GB10), None, is_auto=True).types == {"GB10": 1}


def test_fewer_than_configured_are_refused_with_what_is_there() -> None:
    choice = choose(gpus(RTX3070, RTX4090, on_bus_count=3), gpu_request("RTX-4090:2"))

    assert choice.taken == ()
    assert "1 x RTX-3070, 1 x RTX-4090" in choice.problem
    assert "(3 on its bus)" in choice.remedy


@pytest.mark.parametrize("is_auto", [True, False])
def test_a_host_without_a_driver_is_refused_unless_no_gpus_are_configured(*, is_auto: bool) -> None:
    broken = gpus(problem="nvidia-smi is not there", on_bus_count=4)
    request = None if is_auto else gpu_request("A100:4")

    choice = choose(broken, request, is_auto=is_auto)

    assert "4 NVIDIA cards are on its bus, but the driver does not work" in choice.problem
    assert "install or reload NVIDIA's driver" in choice.remedy
    assert choose(broken, None).problem == ""
    assert choose(broken, None).shape == {"GPU": 0}


def test_a_host_without_cards_is_refused_in_other_words() -> None:
    choice = choose(gpus(problem="nvidia-smi is not there"), None, is_auto=True)

    assert "no GPU can be used there" in choice.problem
    assert "take `accelerators` away" in choice.remedy


def test_more_than_configured_are_left_alone() -> None:
    assert choose(gpus(A100, A100 | {"uuid": "GPU-z"}), gpu_request("A100:1")).uuids == "GPU-a"


def test_no_gpus_have_words_too() -> None:
    assert described(()) == "none"

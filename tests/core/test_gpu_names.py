"""Tests of the one naming of GPUs."""

from __future__ import annotations

import pytest

from hybrid.core.gpu_names import is_same, named, ray_type, request, unknown
from hybrid.core.quantity import GpuRequest


@pytest.mark.parametrize(
    ("text", "memory_gib", "name"),
    [
        ("A100", 40.0, "A100-40GB"),
        ("A100", None, "A100"),
        ("A100-80g", None, "A100-80GB"),
        ("NVIDIA A100-SXM4-40GB", None, "A100-40GB"),
        ("a100", 80.0, "A100-80GB"),
        ("V100", 32.0, "V100-32GB"),
        ("H100-80GB", 80.0, "H100"),
        ("nvidia-tesla-t4", None, "T4"),
        ("T4g", 16.0, "T4G"),
        ("A10G", 22.4, "A10G"),
        ("RTX PRO Server 6000", 96.0, "RTX-PRO-6000"),
        ("RTX PRO 4500", 32.0, "RTX-PRO-4500"),
        ("RTX4090", None, "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", None, "RTX-4090"),
        ("DLCard", None, "DLCARD"),
        ("NVIDIA", None, "NVIDIA"),
    ],
)
def test_named_gives_each_gpu_one_name(text: str, memory_gib: float | None, name: str) -> None:
    assert named(text, memory_gib) == name
    assert named(name, memory_gib) == name


@pytest.mark.parametrize(
    ("name", "type_"),
    [("A100-80GB", "A100"), ("V100", "V100"), ("RTX-PRO-6000", "RTX-PRO-6000"), ("H100", "H100")],
)
def test_ray_type_is_what_ray_marks_nodes_with(name: str, type_: str) -> None:
    assert ray_type(name) == type_


@pytest.mark.parametrize(
    ("asked", "name", "memory_gib"),
    [
        ("a100", "A100-40GB", 40.0),
        ("A100", "A100-80GB", 80.0),
        ("A100-80G", "A100-80GB", None),
        ("H100-80GB", "H100", 80.0),
        ("L4-24GB", "L4", 22.4),
        ("4090", "RTX-4090", None),
        ("rtx4090", "RTX-4090", None),
        ("6000", "RTX-PRO-6000", 96.0),
        ("t4g", "T4G", 16.0),
    ],
)
def test_is_same_takes_what_people_write(asked: str, name: str, memory_gib: float | None) -> None:
    assert is_same(asked, name, memory_gib)


@pytest.mark.parametrize(
    ("asked", "name", "memory_gib"),
    [
        ("A100-80GB", "A100-40GB", 40.0),
        ("A100-80GB", "A100", None),
        ("V100-16GB", "V100", None),
        ("T4", "T4G", 16.0),
        ("A10", "A10G", 22.4),
        ("L4", "L40S", 44.7),
        ("H100", "H200", 141.0),
        ("100", "A100", None),
    ],
)
def test_is_same_refuses_another_gpu_and_an_unknown_memory(
    asked: str, name: str, memory_gib: float | None
) -> None:
    assert not is_same(asked, name, memory_gib)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("A1000", "did you mean A100?"),
        ("h10", "did you mean H100?"),
        ("l40", "did you mean L40S or L4?"),
        ("A10080GB", "did you mean A100-80GB or A100-40GB?"),
        ("mi300x", "catalog; it has: A100-40GB"),
    ],
)
def test_unknown_says_what_was_probably_meant(asked: str, hint: str) -> None:
    names = ["A100-80GB", "A100-40GB", "H100", "L4", "L40S", "T4", "RTX-PRO-6000"]

    assert hint in unknown(asked, names)
    assert asked in unknown(asked, names)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("4090", GpuRequest("4090", 1)),
        ("4090:8", GpuRequest("4090", 8)),
        ("a100:8", GpuRequest("a100", 8)),
        ("GPU:4", GpuRequest("", 4)),
    ],
)
def test_request_reads_a_model_by_its_number(text: str, gpus: GpuRequest) -> None:
    assert request(text) == gpus


@pytest.mark.parametrize("text", ["8", "4090:0", "A100x8", ""])
def test_request_refuses_what_is_no_request(text: str) -> None:
    with pytest.raises(ValueError, match="is not a GPU request"):
        request(text)

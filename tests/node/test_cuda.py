"""Whether a machine's CUDA fits its driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.node import cuda


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("| NVIDIA-SMI 550.54.14  Driver Version: 550.54.14   CUDA Version: 12.4 |", "12.4"),
        ("| NVIDIA-SMI 590.1  KMD Version: 590.1  CUDA UMD Version: 13.1 |", "13.1"),
        ("CUDA Version: N/A", ""),
        ("No devices were found", ""),
        ("", ""),
    ],
)
def test_what_the_driver_serves_is_in_its_own_words(words: str, version: str) -> None:
    assert cuda.served_by_driver(words) == version


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("Cuda compilation tools, release 12.4, V12.4.131", "12.4"),
        ("/bin/sh: 1: nvcc: not found", ""),
    ],
)
def test_the_compiler_says_its_version(words: str, version: str) -> None:
    assert cuda.of_compiler(words) == version


def test_libraries_are_found_where_the_toolkit_and_pip_put_them(tmp_path: Path) -> None:
    root, packages = tmp_path / "root", tmp_path / "packages"
    for file in (
        root / "usr/local/cuda-12.4/lib64/libcudart.so.12",
        root / "usr/local/cuda-12.4/lib64/libcudart.so.12.4.127",
        root / "usr/lib/x86_64-linux-gnu/libcudart.so.11.0",
        root / "usr/lib/x86_64-linux-gnu/libcudart.so.x",
        packages / "nvidia/cuda_runtime/lib/libcudart.so.13",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    assert cuda.libraries(root, [str(packages)]) == ("11.0", "12", "12.4", "13")


@pytest.mark.parametrize(
    ("served", "brought", "least", "words"),
    [
        ("12.4", [], "", ""),
        ("12.4", ["12.8"], "", ""),  # a driver serves all of its major version
        ("12.4", ["11.8"], "", ""),
        ("12.4", ["11.8", "13.0"], "", ""),
        ("12.4", ["13", "13.0"], "", "brings CUDA 13, 13.0, and its NVIDIA driver serves CUDA up"),
        ("12.4", [], "12.4", ""),
        ("12.4", [], "12.10", "its NVIDIA driver serves CUDA up to 12.4, and 12.10 is expected"),
        ("", ["13.0"], "", ""),
        ("", [], "12.4", "nvidia-smi does not say which CUDA its driver serves, and 12.4 is"),
        ("no number", ["x"], "", ""),
    ],
)
def test_what_is_too_new_for_the_driver_is_trouble(
    served: str, brought: list[str], least: str, words: str
) -> None:
    problem = cuda.trouble(served, brought, least)

    assert words in problem
    assert bool(words) == bool(problem)

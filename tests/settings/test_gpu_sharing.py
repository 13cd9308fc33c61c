"""`mps` and `mig` of a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.writing import load_text, problem

HEAD = "name: lab\nhead: {address: 10.0.0.5}\n"


def host(words: str, address: str = "ops@10.0.0.7", gpus: str = "auto") -> str:
    listed = f"name: gpu-1, address: {address}, accelerators: {gpus}, {words}"
    return f"{HEAD}onprem:\n  hosts:\n    - {{{listed}}}\n"


def test_they_are_read_and_mig_leaves_the_count_to_the_driver(tmp_path: Path) -> None:
    (one,) = load_text(tmp_path, host("mps: 4", gpus="A100:8")).onprem.hosts
    assert (one.mps, one.mig, one.gpu_count) == (4, None, 8)
    (one,) = load_text(tmp_path, host("mig: 1g.10gb", gpus="A100:8")).onprem.hosts
    assert (one.mps, one.mig, one.gpu_count) == (None, "1g.10gb", None)


@pytest.mark.parametrize("name", ["1g.5gb", "1g.10gb+me", "1c.3g.20gb", "7g.141gb"])
def test_profiles_as_the_driver_shows_them(tmp_path: Path, name: str) -> None:
    (one,) = load_text(tmp_path, host(f"mig: {name}")).onprem.hosts
    assert one.mig == name


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (host("mig: big"), "mig: 'big' is not a MIG profile; write what `nvidia-smi -L` shows"),
        (host("mig: 19"), "is not a MIG profile"),
        (host("mps: 1"), "mps: 1 is no number of jobs that share a GPU; write 2 to 48"),
        (host("mps: 49"), "49 is no number of jobs"),
        (host("mps: many"), "mps: "),
        (host("mps: 2", address="local", gpus="GPU:2"), "mps is for hosts over SSH"),
        (host("mig: 1g.5gb", address="local", gpus="GPU:2"), "mig is for hosts over SSH"),
        (host("mps: 2").replace("accelerators: auto, ", ""), "no accelerators that could be"),
        (host("mps: 2, mig: 1g.5gb"), "two ways to share a GPU; write one of them"),
    ],
)
def test_what_is_wrong_comes_with_its_place(tmp_path: Path, content: str, says: str) -> None:
    found = problem(tmp_path, content)
    assert "onprem.hosts[0].m" in found
    assert says in found

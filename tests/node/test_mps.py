"""NVIDIA's MPS starts before Ray, ends with the node, and its end is the node's."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hybrid.node.folder import Phase
from hybrid.node.processes import Process
from hybrid.node.stopping import stop
from tests.node.box import Box, is_gone

pytestmark = pytest.mark.slow

CONTROL = """#!/bin/sh
# Stands in for nvidia-cuda-mps-control: leaves a daemon of that name behind.
[ "$1" = -d ] || exit 2
env >"$CUDA_MPS_PIPE_DIRECTORY/env"
ln -sf /bin/sleep "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control"
"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control" 1000 >/dev/null 2>&1 &
"""


def with_mps(box: Box, folder: Path, text: str = CONTROL) -> Path:
    program = folder / "mps-control"
    program.write_text(text)
    program.chmod(0o755)
    place = box.temp_dir / "mps"
    env = {"FAKE_RAY": "ok", "CUDA_MPS_PIPE_DIRECTORY": str(place), "CUDA_VISIBLE_DEVICES": "GPU-a"}
    box.write(mps=str(program), env=env)
    return place


def daemons(box: Box) -> list[Process]:
    return [process for process in box.everything() if process.name == "nvidia-cuda-mps"]


def test_it_starts_in_the_nodes_environment_and_ends_with_it(host: Box, tmp_path: Path) -> None:
    place = with_mps(host, tmp_path)
    host.start_and_wait()

    assert "CUDA_VISIBLE_DEVICES=GPU-a" in (place / "env").read_text()
    found = daemons(host)
    assert len(found) == 1
    assert stop(host.path) == ()
    assert is_gone(found)


def test_a_node_whose_mps_does_not_start_says_why(host: Box, tmp_path: Path) -> None:
    with_mps(host, tmp_path, "#!/bin/sh\necho 'An instance is already running'; exit 1\n")
    host.start_and_wait(Phase.FAILED)

    assert "NVIDIA's MPS does not start" in host.problem
    assert "already running" in host.problem


def test_a_node_whose_mps_ends_is_broken(host: Box, tmp_path: Path) -> None:
    with_mps(host, tmp_path)
    host.start_and_wait()

    os.kill(daemons(host)[0].pid, signal.SIGKILL)
    host.wait_for(Phase.EXITED)
    assert "NVIDIA's MPS ended by itself" in host.problem

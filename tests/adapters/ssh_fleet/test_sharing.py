"""How a host's GPUs are shared: MIG devices in place of cards, or MPS beside them."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.adapters.ssh_fleet.facts import Gpus
from hybrid.adapters.ssh_fleet.orders import fitted, orders
from hybrid.core.bootstrap import NodePlan
from hybrid.core.quantity import gpu_request
from tests.adapters.ssh_fleet.make import A100, RTX4090, facts, finding, wanted

MPS = "/usr/bin/nvidia-cuda-mps-control"
PARTS = [
    {"profile": "1g.10gb", "uuid": "MIG-1"},
    {"profile": "1g.10gb", "uuid": "MIG-2"},
    {"profile": "3g.40gb", "uuid": "MIG-3"},
]
CUT = {**A100, "is_mig_on": True, "parts": PARTS}
TWO = gpu_request("A100:2")
WHOLE = {**A100, "uuid": "GPU-z"}


def gpus(*found: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"found": found, "cuda": "12.8", **changes}


def test_mig_devices_of_the_profile_are_the_gpus() -> None:
    choice = wanted(is_auto=True, mig="1g.10gb").choose(Gpus.model_validate(gpus(CUT)))

    assert choice.shape == {"GPU": 2}
    assert choice.uuids == "MIG-1,MIG-2"
    assert choice.labels == {
        "accelerator": "A100-80GB-MIG-1g.10gb",
        "gpu-sharing": "mig",
        "mig-profile": "1g.10gb",
    }


def test_cards_that_are_not_cut_are_left_alone() -> None:
    choice = wanted(gpus=TWO, mig="3g.40gb").choose(Gpus.model_validate(gpus(CUT, WHOLE)))

    assert choice.uuids == "MIG-3"


def test_a_finding_tells_how_they_are_shared() -> None:
    mig = finding("gpus", want=wanted(is_auto=True, mig="1g.10gb"), gpus=gpus(CUT))
    assert mig.state == "ok"
    assert mig.found.startswith("1 x A100-80GB as 2 MIG devices 1g.10gb; driver 570.1")

    mps = finding("gpus", want=wanted(is_auto=True, mps_clients=4), gpus=gpus(A100, mps=MPS))
    assert mps.found.startswith("1 x A100-80GB, each shared among 4 by MPS; driver 570.1")


@pytest.mark.parametrize(
    ("want", "found", "problem", "remedy"),
    [
        (
            {"is_auto": True, "mig": "2g.20gb"},
            gpus(CUT),
            "mig is 2g.20gb, but it has 2 x 1g.10gb, 1 x 3g.40gb",
            "mig -i INDEX -cgi 2g.20gb -C",
        ),
        (
            {"is_auto": True, "mig": "1g.10gb"},
            gpus({**CUT, "parts": []}),
            "but it has no MIG device yet",
            "-cgi 1g.10gb",
        ),
        (
            {"is_auto": True, "mig": "1g.10gb"},
            gpus(RTX4090),
            "MIG is on for none of its 1 GPUs",
            "-mig 1",
        ),
        (
            {"gpus": TWO},
            gpus(CUT, WHOLE),
            "MIG is on for 1 of its 2 GPUs (2 x 1g.10gb, 1 x 3g.40gb)",
            "write `mig: 1g.10gb` for the host",
        ),
        (
            {"is_auto": True, "mps_clients": 2},
            gpus(CUT, mps=MPS),
            "MIG is on for 1 of its 1 GPUs",
            "-mig 0",
        ),
        (
            {"is_auto": True, "mps_clients": 2},
            gpus(A100),
            "nvidia-cuda-mps-control is not there",
            "or remove mps",
        ),
        (
            {"is_auto": True, "mps_clients": 2},
            gpus(problem="nvidia-smi is not there"),
            "no GPU can be used there",
            "install NVIDIA's driver",
        ),
    ],
)
def test_what_cannot_be_shared_so_keeps_the_host_out(
    want: dict[str, Any], found: dict[str, Any], problem: str, remedy: str
) -> None:
    judged = finding("gpus", want=wanted(**want), gpus=found)

    assert judged.is_blocking
    assert problem in judged.found
    assert remedy in judged.remedy


def told(found: dict[str, Any], **want: Any) -> dict[str, Any]:
    plan = NodePlan(
        python="/usr/bin/python3", temp_dir="/tmp/a", resources={}, head_address="10.0.0.5:6379"
    )
    host = facts(gpus=found)
    choice = wanted(**want).choose(host.gpus)
    plan = fitted(plan, host, choice, cluster_id="c1", name="gpu-1")
    return dict(orders(plan, choice, cluster_id="c1", name="gpu-1"))


def test_the_node_is_told_to_start_mps_and_where_it_listens() -> None:
    made = told(gpus(A100, mps=MPS), is_auto=True, mps_clients=3)

    assert made["mps"] == MPS
    folder = f"{made['temp_dir']}/mps"
    assert made["env"]["CUDA_MPS_PIPE_DIRECTORY"] == folder
    assert len(f"{folder}/control_privileged") < 100  # a socket's path has 107 bytes at most
    assert made["env"]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "33.33"
    assert made["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert any("gpu-sharing=mps" in word and "mps-clients=3" in word for word in made["command"])
    assert "--num-gpus=1" in made["command"]


def test_a_node_without_mps_hears_of_no_other_mps() -> None:
    made = told(gpus(A100, mps=MPS), is_auto=True)

    assert made["mps"] is None
    assert made["env"]["CUDA_MPS_PIPE_DIRECTORY"] is None

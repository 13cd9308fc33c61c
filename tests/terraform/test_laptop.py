"""The laptop example, as a person runs it: a real Ray cluster, with no cloud account."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.box import wait_until
from tests.terraform.provider.conftest import Lab
from tests.terraform.rig import ROOT

pytestmark = pytest.mark.ray


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


def test_apply_gives_a_cluster_that_works_and_destroy_leaves_nothing(lab: Lab) -> None:
    shutil.copy(ROOT / "terraform/examples/laptop/main.tf", lab.rig.folder)
    lab.rig.ok("init")

    lab.rig.ok("apply", "-auto-approve", timeout_s=240)

    # a job at home, and one for which a node of the pretended cloud is rented
    jobs = [
        lab.hybrid("submit", "--site", site, "--max-wait", "2s", "--gpus", "1", "--", "true")
        for site in ("any", "cloud")
    ]
    assert [job.returncode for job in jobs] == [0, 0], jobs[0].stderr

    def is_done() -> bool:
        told = json.loads(lab.hybrid("jobs", "--json").stdout)["jobs"]
        return [job["state"] for job in told] == ["succeeded"] * 2

    wait_until(is_done, "both jobs to succeed", 120)
    rented = lab.hybrid("cost", "--json").stdout
    assert json.loads(rented)["instances"], rented
    assert lab.rig.is_in_line()

    lab.rig.ok("destroy", "-auto-approve", timeout_s=240)

    assert lab.processes() == []
    assert lab.record("laptop") is None
    assert lab.hybrid("down", "--yes").stdout.startswith("No hybrid cluster is running")

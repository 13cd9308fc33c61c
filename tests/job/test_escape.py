"""A job that holds a node tries to start work elsewhere, on a real Ray with a rented node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.adapters.ray.cluster import RayCluster
from hybrid.core.models import NodeStatus
from tests.ray_cluster import LocalRay, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow]

WORK = Path(__file__).parent / "work"


def nodes_of(local_ray: LocalRay) -> dict[str, str]:
    """Return the ids of the two worker nodes by site."""
    cluster = RayCluster(local_ray.address, local_ray.token)
    found: dict[str, str] = {}

    def are_there() -> bool:
        for node in cluster.view().nodes:
            # Nodes of other tests, sites of their own, are seen for a while after their end.
            if node.status is not NodeStatus.DEAD and node.labels.get("role") != "head":
                found[node.labels["site"]] = node.node_id
        return found.keys() >= {"onprem", "cloud"}

    wait_until(are_there, "both nodes")
    cluster.close()
    return found


def test_what_a_job_starts_stays_on_its_nodes(local_ray: LocalRay, tmp_path: Path) -> None:
    nodes, result, log = nodes_of(local_ray), tmp_path / "result.json", tmp_path / "log"
    given = {
        "HYBRID_JOB_ID": "j-escape",
        "HYBRID_ATTEMPT": "1",
        "HYBRID_SITE": "onprem",
        "HYBRID_NODES": "1",
        "HYBRID_SLOTS": json.dumps([[nodes["onprem"], 1.0]]),
        "HYBRID_GROUP_BUNDLE": json.dumps({"GPU": 1.0, "CPU": 1.0}),
        "HYBRID_ENTRYPOINT": f"python {WORK / 'escape.py'} {result} {nodes['cloud']}",
    }
    env = {
        **os.environ,
        **local_ray.driver_env(),
        **given,
        "RAY_ADDRESS": local_ray.address,
        # What Ray Jobs gives a driver.
        "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"runtime_env": {"env_vars": given}}),
    }
    with log.open("ab") as sink:
        code = subprocess.run(
            [sys.executable, "-m", "hybrid.job"], env=env, stdout=sink, stderr=sink, timeout=200
        ).returncode
    said = log.read_text()

    assert code == 0, said
    assert "printed by the driver" in said
    found = json.loads(result.read_text())
    assert found.pop("bundles") == 1
    assert found.pop("main thread"), "a program may handle signals"
    outside = {way for way, where in found.items() if nodes["cloud"] in where}
    assert outside == set(), found
    home = {way for way, where in found.items() if set(where) == {nodes["onprem"]}}
    # A group of its own is at home; the head, which is there too, may have a part of it.
    assert set(found) - home <= {"group of its own"}, found

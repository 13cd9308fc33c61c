"""A machine that is not what its offer says tells so itself, before it costs a join timeout.

It has a body, runs its real user data, and its offer has GPUs that no driver shows.
"""

from __future__ import annotations

import pytest

from hybrid.core.models import InstanceState
from tests.e2e.bodies import embodied

pytestmark = [pytest.mark.bodies, pytest.mark.ray, pytest.mark.slow]


@pytest.mark.parametrize("name", ["aws", "baidu"])
def test_a_machine_whose_python_is_not_there_is_ended_at_once_and_says_so(name: str) -> None:
    with embodied(name) as cluster:
        accounts = cluster.settings()["providers"]
        accounts[name]["python"] = "/opt/none/bin/python"
        cluster.begin(providers=accounts)
        job = cluster.submit(f"provider={name}", gpus=1)

        cluster.wait_until(
            lambda: any(row.state is InstanceState.TERMINATED for row in cluster.rows()),
            "the end of the machine",
        )

        row = cluster.rows()[0]
        assert "/opt/none/bin/python of this image does not run this program" in row.problem
        assert row.joined_at_s is None
        # Not by the deadline of its join: it was told to end, or had ended itself.
        ends = [*cluster.events("instance_terminating"), *cluster.events("instance_terminated")]
        assert {e.facts["because"] for e in ends} <= {"node_failed", "gone"}
        job.cancel()


def test_a_machine_without_its_gpus_is_ended_at_once_and_its_offer_rests() -> None:
    with embodied("aws") as cluster:
        accounts = cluster.settings()["providers"]
        accounts["aws"]["logical_gpus"] = False
        cluster.begin(providers=accounts)
        job = cluster.submit("provider=aws", gpus=1)

        cluster.wait_until(
            lambda: any(row.state is InstanceState.TERMINATED for row in cluster.rows()),
            "the end of the machine",
        )

        row = cluster.rows()[0]
        assert "no GPU is seen on this machine" in row.problem
        assert row.joined_at_s is None
        (event, *_) = [e for e in cluster.events("node_reported") if e.facts["phase"] == "failed"]
        assert event.subject == row.instance_id
        (end, *_) = cluster.events("instance_terminating")
        assert end.facts["because"] == "node_failed"  # and no deadline of its join
        (rest, *_) = cluster.status().plan.resting
        assert "no GPU is seen on this machine" in rest.message
        job.cancel()

"""Where a driver may run: at home if it can, now or soon."""

from __future__ import annotations

import pytest

from hybrid.core.models import Job, JobSpec, JobState, Node, NodeStatus
from hybrid.core.policy.plan import Host
from hybrid.jobs.placing import Absences, entrypoint_selector
from tests.world.clock import VirtualClock


def make_node(gpus: float, *, instance_id: str = "", host: str = "", is_dead: bool = False) -> Node:
    return Node(
        node_id=f"n{gpus}{instance_id}",
        instance_id=instance_id,
        host=host,
        total={"GPU": gpus, "CPU": 8},
        available={},
        status=NodeStatus.DEAD if is_dead else NodeStatus.RUNNING,
    )


HOME = make_node(4)
RENTED = make_node(8, instance_id="i-1")
HOST = Host(name="h-1", shape={"GPU": 4})


def make_job(spec: JobSpec) -> Job:
    return Job(job_id="j", spec=spec, state=JobState.QUEUED, created_at_s=0, state_at_s=0)


@pytest.mark.parametrize(
    ("spec", "nodes", "wanted"),
    [
        pytest.param(JobSpec(entrypoint="x", gpus=4), [HOME], "onprem", id="fits-at-home"),
        pytest.param(JobSpec(entrypoint="x", gpus=8), [HOME], "cloud", id="too-large-for-home"),
        pytest.param(JobSpec(entrypoint="x", gpus=8), [HOME, RENTED], "cloud", id="rented-fits"),
        pytest.param(
            JobSpec(entrypoint="x", gpus=4), [make_node(4, is_dead=True)], "cloud", id="home-dead"
        ),
        pytest.param(JobSpec(entrypoint="x", site="cloud"), [HOME], "cloud", id="asks-for-cloud"),
        pytest.param(
            JobSpec(entrypoint="x", gpus=8, site="onprem"), [HOME], "onprem", id="asks-for-home"
        ),
    ],
)
def test_a_driver_runs_at_home_if_a_node_there_can_hold_it(
    spec: JobSpec, nodes: list[Node], wanted: str
) -> None:
    assert entrypoint_selector(make_job(spec), nodes) == {"site": wanted}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param(JobSpec(entrypoint="x", gpus=4), "onprem", id="fits"),
        pytest.param(JobSpec(entrypoint="x", gpus=8), "cloud", id="too-large"),
        pytest.param(
            JobSpec(entrypoint="x", gpus=4, cpus=64, memory_bytes=2**40), "onprem", id="not-told"
        ),
    ],
)
def test_a_host_that_is_not_a_node_yet_counts_as_home(spec: JobSpec, wanted: str) -> None:
    """What its configuration leaves open, Ray counts on the machine: unknown is not zero."""
    head = make_node(0)

    assert entrypoint_selector(make_job(spec), [head], expected=[HOST]) == {"site": wanted}


def test_without_clouds_a_driver_waits_for_home() -> None:
    job = make_job(JobSpec(entrypoint="x", gpus=64))

    assert entrypoint_selector(job, [HOME], has_clouds=False) == {"site": "onprem"}


def test_a_driver_that_needs_nothing_is_left_to_ray() -> None:
    assert entrypoint_selector(make_job(JobSpec(entrypoint="x")), [HOME]) == {}


def test_a_host_that_stays_away_is_no_longer_counted_on() -> None:
    clock = VirtualClock()
    absences = Absences(clock)

    def expected(*nodes: Node, is_ray_up: bool = True) -> tuple[Host, ...]:
        return absences.expected(nodes, [HOST], is_ray_up=is_ray_up)

    assert expected() == (HOST,)
    clock.advance(299)
    assert expected(make_node(4, host="h-1", is_dead=True)) == (HOST,)
    clock.advance(2)
    assert expected() == ()
    assert expected(make_node(4, host="h-1")) == ()
    assert expected() == (HOST,), "it went away just now"


def test_a_host_is_not_given_up_because_ray_was_away() -> None:
    clock = VirtualClock()
    absences = Absences(clock)
    absences.expected((), [HOST], is_ray_up=True)

    clock.advance(1_000)
    absences.expected((), [HOST], is_ray_up=False)

    assert absences.expected((), [HOST], is_ray_up=True) == (HOST,)

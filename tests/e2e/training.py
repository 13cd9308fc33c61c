"""Trainings of `work/train.py` on a cluster, and what their notebooks say about them."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from hybrid.client import Checkpoint, Job
from hybrid.core.models import JobState
from tests.e2e.deployment import WORK, Deployment

QUICK = Checkpoint(save_s=1.0, load_s=1.0)


def train(
    cluster: Deployment, steps: int, *, ways: str = "", **options: object
) -> tuple[Job, Path]:
    """Submit a training of so many steps, of 0.1 s each; return it and its notebook."""
    notebook = cluster.folder / f"steps-{len(list(cluster.folder.glob('steps-*')))}"
    notebook.touch()
    command = f"python train.py {steps} {notebook} {ways}".strip()
    values = {"working_dir": WORK, "gpus": 2, "checkpoint": QUICK, **options}
    return cluster.client.submit(command, **values), notebook  # type: ignore[arg-type]


def steps(notebook: Path) -> list[int]:
    """Return the steps in the order in which they were done."""
    return [int(line.split()[0]) for line in notebook.read_text().splitlines()]


def attempts(notebook: Path) -> list[int]:
    """Return which attempts worked, in order; one that comes twice worked beside another."""
    lines = notebook.read_text().splitlines()
    return [number for number, _ in groupby(int(line.split()[1]) for line in lines)]


def places(notebook: Path) -> set[str]:
    """Return where it was done."""
    return {line.split(" ", 2)[2] for line in notebook.read_text().splitlines()}


def site(cluster: Deployment, job: Job) -> str:
    """Return where a job runs now: `onprem`, `cloud`, or `""`."""
    row = job.details()
    if row.state is not JobState.RUNNING:
        return ""
    nodes = {node.node_id: node.site for node in cluster.client.nodes().nodes}
    return nodes.get(row.slots[0].node_id, "")


def kinds(cluster: Deployment, job: Job) -> list[str]:
    """Return the kinds of all events of a job, oldest first."""
    return [event.kind for event in cluster.client.events(subject=job.id).events]

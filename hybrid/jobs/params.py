"""How the queue behaves: promises and times that are not the policy's."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from hybrid.core.models import JobClass, Model

NO_WAIT_LIMIT_S = 10.0**9
"""The longest wait of best-effort work: none that ends."""

WAITS_S: Mapping[JobClass, float] = {
    JobClass.INTERACTIVE: 60.0,
    JobClass.BATCH: 1_800.0,
    JobClass.LONG: 14_400.0,
    JobClass.BEST_EFFORT: NO_WAIT_LIMIT_S,
}
"""Longest acceptable waits, seconds."""


class QueueParams(Model):
    """Settings of the job queue.

    Attributes:
        max_wait_by_class_s: Longest acceptable wait of a job that does not say it itself.
        checkpoint_url: Folder for the checkpoints of jobs that name none, as an fsspec URL.
        save_grace_s: A job that is asked to save has twice its `save_s` and so much more.
        leave_margin_s: How long before the end of its node a job should have saved.
        promise_s: A place that is kept for a job and does not become free is given back after so
            long.
        pending_s: A job that Ray does not start for so long, though its place was free, goes back
            into the queue.
        least_losses: A job with checkpoints starts anew at least so often after its node was
            lost without any progress in between, whatever its `retries`.
        look_s: How often the last checkpoint of a running job is looked up.
        data_mbit_per_s: How fast data goes out; `None`: not known.
    """

    max_wait_by_class_s: Mapping[JobClass, float] = Field(default_factory=lambda: dict(WAITS_S))
    checkpoint_url: str = ""
    save_grace_s: float = Field(default=30.0, ge=0)
    leave_margin_s: float = Field(default=5.0, ge=0)
    promise_s: float = Field(default=1_800.0, gt=0)
    pending_s: float = Field(default=120.0, gt=0)
    least_losses: int = Field(default=3, ge=0)
    look_s: float = Field(default=60.0, gt=0)
    data_mbit_per_s: float | None = Field(default=None, gt=0)

"""The output of jobs, kept before the nodes of their drivers leave."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.errors import ClusterError, JobError
from hybrid.core.models import Job
from hybrid.core.ports import KEPT_LOG_BYTES, JobLogs, JobRunner, LogEnd


@dataclass
class Output:
    """Keeps the end of what each attempt of a job wrote, one after the other."""

    runner: JobRunner
    logs: JobLogs

    def keep(self, job: Job) -> bool:
        """Keep what an attempt that has ended wrote; return whether that is done.

        Output that cannot be read is to be waited for, but not for ever: its node may be dead.
        """
        try:
            end = self.runner.log_end(job.ray_id, limit_bytes=KEPT_LOG_BYTES)
        except JobError:
            return True  # it never wrote anything
        except ClusterError:
            return False
        self.logs.put(job.job_id, self._after_earlier(job, end))
        return True

    def _after_earlier(self, job: Job, end: LogEnd) -> LogEnd:
        earlier = self.logs.get(job.job_id) if job.attempt > 1 else None
        if earlier is None:
            return end
        text = f"{earlier.rstrip()}\n{headline(job)}{end.text}"
        skipped = max(0, len(text) - KEPT_LOG_BYTES)
        return LogEnd(text=text[skipped:], skipped_bytes=end.skipped_bytes + skipped)


def headline(job: Job) -> str:
    """Return the line between the output of one attempt and that of the next."""
    return f"--- attempt {job.attempt} ---\n"

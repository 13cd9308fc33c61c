"""A submitted job, seen from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, overload

from hybrid.client import waiting
from hybrid.client.errors import NoClusterError, UnreachableError, WaitTimeoutError
from hybrid.client.http import Http

if TYPE_CHECKING:
    from hybrid.core import models, views

_POLL_S = (0.2, 0.5, 1.0, 2.0)
_AWAY_S = 60.0
"""How long the controller may be away (a restart) before a waiting call gives up."""
_BREAK_LIMIT = 3
"""How often in a row an output may break without bringing anything new."""


class Job:
    """A job by its id. Holds no state: every call asks the controller."""

    def __init__(self, http: Http, job_id: str) -> None:
        self._http = http
        self._id = job_id

    @property
    def id(self) -> str:
        """The job's id."""
        return self._id

    def __repr__(self) -> str:
        """Return what it is, without asking the controller."""
        return f"Job({self._id!r})"

    def details(self) -> models.Job:
        """Return all that is known of the job."""
        from hybrid.core import models

        content = self._http.get(f"jobs/{self._id}")
        return models.Job.model_validate_json(content, extra="ignore")

    def audit(self) -> views.AuditView:
        """Return where the job and what it started ran."""
        from hybrid.core import views

        content = self._http.get(f"jobs/{self._id}/audit")
        return views.AuditView.model_validate_json(content, extra="ignore")

    def status(self) -> models.JobState:
        """Return where the job is: `queued`, `submitted`, `running` or how it ended."""
        return self.details().state

    def wait(self, timeout: float | None = None) -> models.JobState:
        """Wait until the job has ended, and return how.

        A controller that restarts meanwhile is waited for.

        Args:
            timeout: Seconds to wait at most; `None` for ever.

        Raises:
            WaitTimeoutError: It still goes on.
            UnreachableError: The controller is away for more than a minute.
        """
        look = Look(self)
        while (pause_s := look.pause_s(timeout)) is not None:
            waiting.sleep(pause_s)
            look.again()
        return look.state

    @overload
    def logs(self, follow: Literal[False] = ...) -> str: ...

    @overload
    def logs(self, follow: Literal[True]) -> Iterator[str]: ...

    def logs(self, follow: bool = False) -> str | Iterator[str]:  # noqa: FBT001, FBT002 - public API
        """Return the output so far, or with `follow` yield it until the job ends."""
        if follow:
            return self._followed()
        return self._http.get(f"jobs/{self._id}/logs").decode("utf-8", "replace")

    def cancel(self) -> models.JobState:
        """Ask for the job's end; an ended job stays as it is."""
        from hybrid.core import models

        content = self._http.post(f"jobs/{self._id}/cancel", {}, is_repeatable=True)
        return models.JobState(json.loads(content)["state"])

    def _followed(self) -> Iterator[str]:
        """Yield output; after a break, go on where it broke."""
        self.details()  # an unknown job, or no controller at all, shows at once
        given_count = 0
        break_count = 0
        while True:
            skip_count = given_count
            try:
                for piece in self._http.stream(f"jobs/{self._id}/logs", {"follow": True}):
                    fresh = piece[skip_count:]
                    skip_count = max(0, skip_count - len(piece))
                    if fresh:
                        given_count += len(fresh)
                        break_count = 0
                        yield fresh
            except UnreachableError:
                break_count += 1
                if break_count > _BREAK_LIMIT:
                    self.logs()  # what broke in the middle says why when it breaks at once
                    raise
                self._wait_for_controller()
            else:
                return

    def _wait_for_controller(self) -> None:
        """Wait until the controller can be found again. Raises when it is away for long."""
        broken_s = waiting.monotonic_s()
        while True:
            waiting.sleep(_POLL_S[1])
            try:
                self._http.refresh()
                self.details()
            except (UnreachableError, NoClusterError):
                if waiting.monotonic_s() - broken_s > _AWAY_S:
                    raise
            else:
                return


class Look:
    """Looks at a job again and again until it has ended; who pauses in between is not its matter.

    The first look, made here, raises what `Job.status` does; a controller that is away later is
    waited for.

    Attributes:
        state: As of the last look that was answered.
    """

    def __init__(self, job: Job) -> None:
        """Look for the first time."""
        self._job = job
        self._started_s = self._seen_s = waiting.monotonic_s()
        self._count = 0
        self.state = job.status()

    def pause_s(self, timeout: float | None) -> float | None:
        """Return how long to pause before the next look, or `None` when the job has ended.

        Raises:
            WaitTimeoutError: It still goes on after so many seconds.
        """
        if self.state.is_ended:
            return None
        pause_s = _POLL_S[min(self._count, len(_POLL_S) - 1)]
        self._count += 1
        if timeout is None:
            return pause_s
        left_s = self._started_s + timeout - waiting.monotonic_s()
        if left_s <= 0:
            raise WaitTimeoutError(f"job {self._job.id} still goes on after {timeout:g} s")
        return min(pause_s, left_s)

    def again(self) -> None:
        """Look. Raises `UnreachableError` when the controller is away for long."""
        try:
            self.state = self._job.status()
            self._seen_s = waiting.monotonic_s()
        except (UnreachableError, NoClusterError):
            if waiting.monotonic_s() - self._seen_s > _AWAY_S:
                raise

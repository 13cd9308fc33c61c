"""`hybrid.Client`: everything a user or an operator can ask of a running cluster."""

from __future__ import annotations

import getpass
import json
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from hybrid.client import discover
from hybrid.client.errors import UnhealthyError, UnreachableError
from hybrid.client.http import READ_S, Http
from hybrid.client.job import Job

if TYPE_CHECKING:
    from hybrid.core import views
    from hybrid.core.models import Model

    M = TypeVar("M", bound=Model)

Direction = Literal["out", "in", "all", "dry-run"]
Site = Literal["any", "onprem", "cloud"]
JobClass = Literal["interactive", "batch", "long", "best-effort"]


@dataclass(frozen=True)
class Checkpoint:
    """A job's promise that it can be stopped and go on elsewhere; see docs/checkpoints.md.

    Attributes:
        url: Folder for its checkpoints, as an fsspec URL; `""`: one inside `jobs.checkpoints`.
        save_s: From the request to save until it is saved, seconds.
        load_s: From its start elsewhere until it does useful work again, seconds.
        size_gb: What is shipped between sites, in GB (10^9 bytes).
        signal: `USR1` or `TERM` to be told by a signal; `""`: it asks by itself.
    """

    url: str = ""
    save_s: float = 60.0
    load_s: float = 90.0
    size_gb: float = 0.0
    signal: Literal["", "USR1", "TERM"] = ""


LOOK_S = 120.0
"""How long a look into all clouds may take."""


@dataclass(frozen=True)
class DataEntry:
    """A file that a job reads, copied to its node before it starts; see docs/data.md.

    Attributes:
        url: A local path, http(s), or an fsspec URL.
        size_gb: In GB (10^9 bytes); `None` when not known.
        place: Where it lies: `onprem`, a provider such as `aws`, or `aws/us-east-1`.
        sha256: Checked after each copy; `""`: not checked.
    """

    url: str
    size_gb: float | None = None
    place: str = "onprem"
    sha256: str = ""


class Client:
    """A running cluster. Cheap to make: it connects with the first call.

    Args:
        address: Controller's address; default `HYBRID_ADDRESS`, else the cluster that runs here.
        token: Its API token; default `HYBRID_TOKEN`, else the one in the state folder.
        cluster: Name of the cluster, when several run here; default `HYBRID_CLUSTER`.

    Every method raises `NoClusterError` when no cluster is running, `UnreachableError` when
    its controller does not answer, and `ApiError` when it refuses.
    """

    def __init__(
        self, address: str | None = None, token: str | None = None, cluster: str | None = None
    ) -> None:
        self._http = Http(lambda: discover.find(address or "", token or "", cluster or ""))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close connections."""
        self.close()

    def close(self) -> None:
        """Close connections; a later call opens new ones."""
        self._http.close()

    @property
    def address(self) -> str:
        """Where the controller listens."""
        return self._http.endpoint.url

    # --- jobs ------------------------------------------------------------------------------

    def submit(
        self,
        entrypoint: str,
        *,
        working_dir: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        gpus: float = 0,
        cpus: float = 0,
        memory_bytes: int = 0,
        site: Site = "any",
        name: str = "",
        priority: int = 50,
        tags: Mapping[str, str] | None = None,
        job_id: str = "",
        nodes: int = 0,
        job_class: JobClass = "batch",
        max_wait_s: float | None = None,
        deadline_at_s: float | None = None,
        lasts_s: float = 0.0,
        retries: int = 0,
        checkpoint: Checkpoint | bool | None = None,
        data: Sequence[DataEntry] = (),
    ) -> Job:
        """Queue a job.

        One that asks for GPUs waits in the queue and starts where the policy says; one without
        is handed to Ray at once, and its tasks are seen as demand.

        Args:
            entrypoint: Shell command of the driver.
            working_dir: Folder to send along; the driver starts in it.
            env: Environment of the driver and its workers.
            gpus: GPUs of the driver itself; its tasks ask for their own. With `nodes`: GPUs of
                the job's placement group on each node.
            cpus: Its CPUs.
            memory_bytes: Its memory.
            site: Where the driver may run.
            name: For people.
            priority: 0 to 100, higher first.
            tags: Any words of yours.
            job_id: Made here when empty. Submitting the same id again is the same job.
            nodes: A gang: so many nodes at once, or none; 0 for a driver that uses the GPUs.
            job_class: How long it may wait. `best-effort` fills idle GPUs at home and leaves at
                once, whether it can save or not.
            max_wait_s: Longest acceptable wait, seconds, if that of its class is not right.
            deadline_at_s: When it should be done, seconds since the epoch; with `lasts_s`, how
                long it runs, as far as you know, the latest start follows.
            lasts_s: Seconds; only used with `deadline_at_s`.
            retries: How often it starts anew after it failed.
            checkpoint: What it promises about being stopped (docs/checkpoints.md); `True` for
                the defaults. Without one it is never moved.
            data: What is copied to its node before it starts (docs/data.md).

        Raises:
            ConfigError: `working_dir` cannot be sent, or a value is out of bounds (a
                `RequestError`, which is one too).
            UnreachableError: No answer came; it says the id, and the job may have been taken.
        """
        spec = {
            "entrypoint": entrypoint,
            "name": name,
            "gpus": gpus,
            "cpus": cpus,
            "memory_bytes": memory_bytes,
            "site": site,
            "package": self._send(working_dir) if working_dir is not None else "",
            "env": dict(env or {}),
            "priority": priority,
            "user": _user(),
            "tags": dict(tags or {}),
            "nodes": nodes,
            "job_class": job_class,
            "max_wait_s": max_wait_s,
            "deadline_at_s": deadline_at_s,
            "lasts_s": lasts_s,
            "retries": retries,
            "checkpoint": _promise(checkpoint),
            "data": [asdict(entry) for entry in data],
        }
        body = {"spec": spec, "job_id": job_id or f"j-{secrets.token_hex(6)}"}
        try:
            answer = self._http.post("jobs", body, is_repeatable=True)
        except UnhealthyError:  # it answered, and it was a no
            raise
        except UnreachableError as error:
            raise UnreachableError(
                f"{error}. Whether it took job {body['job_id']} is not known: look with `hybrid "
                "jobs` before you submit again, or submit with the same job_id"
            ) from error
        return Job(self._http, str(json.loads(answer)["job_id"]))

    def job(self, job_id: str) -> Job:
        """Return a job by its id; whether it exists shows with the first question."""
        return Job(self._http, job_id)

    def jobs(self, limit: int = 200, live: bool = False) -> views.JobsView:  # noqa: FBT001, FBT002 - public API
        """Return jobs, newest first; with `live` only those that have not ended, oldest first."""
        from hybrid.core import views

        return _parsed(views.JobsView, self._http.get("jobs", {"limit": limit, "live": live}))

    # --- reading ---------------------------------------------------------------------------

    def read(self, path: str, **params: str | float | bool) -> bytes:
        """Return an answer of the API as it is, such as `read("status")`."""
        return self._http.get(path, params)

    def status(self) -> views.StatusView:
        """Return the whole cluster on one page."""
        from hybrid.core import views

        return _parsed(views.StatusView, self._http.get("status"))

    def nodes(self) -> views.NodesView:
        """Return nodes, on-prem hosts and instances that are not nodes yet."""
        from hybrid.core import views

        return _parsed(views.NodesView, self._http.get("nodes"))

    def instances(self, limit: int = 1000) -> views.InstancesView:
        """Return rented instances, ended ones included, newest first."""
        from hybrid.core import views

        return _parsed(views.InstancesView, self._http.get("instances", {"limit": limit}))

    def plan(self) -> views.PlanView:
        """Return the last decision and its reasons."""
        from hybrid.core import views

        return _parsed(views.PlanView, self._http.get("plan"))

    def cost(self, since_s: float = 0.0) -> views.CostView:
        """Return estimated spend since an instant, in seconds since the epoch."""
        from hybrid.core import views

        return _parsed(views.CostView, self._http.get("cost", {"since": since_s}))

    def events(self, after: int = 0, limit: int = 200, subject: str = "") -> views.EventsView:
        """Return history, oldest first; with `after=0` the last `limit` events."""
        from hybrid.core import views

        params: dict[str, int | str] = {"after": after, "limit": limit, "subject": subject}
        return _parsed(views.EventsView, self._http.get("events", params))

    def config(self) -> dict[str, object]:
        """Return the configuration in force, secrets left out."""
        answer: dict[str, object] = json.loads(self._http.get("config"))
        return answer

    # --- operating -------------------------------------------------------------------------

    def drain(self, target: str, deadline_s: float | None = None) -> views.Accepted:
        """Drain a node: no new work, and a rented one ends afterwards."""
        body = {"target": target, "deadline_s": deadline_s, "owner": _owner()}
        return self._asked("drain", body)

    def pause(self, direction: Direction = "all") -> views.Accepted:
        """Pause launches (`out`), scale-in (`in`), both, or every change (`dry-run`)."""
        return self._asked("pause", {"direction": direction, "owner": _owner()})

    def resume(self, direction: Direction = "all") -> views.Accepted:
        """Undo `pause`; `all` undoes a dry run, too."""
        return self._asked("resume", {"direction": direction, "owner": _owner()})

    def gc(self, dry_run: bool = True) -> views.GcView:  # noqa: FBT001, FBT002 - public API
        """Look for orphans in all clouds; end them unless `dry_run`."""
        from hybrid.core import views

        answer = self._http.post("gc", {"dry_run": dry_run}, read_s=LOOK_S, is_repeatable=True)
        return _parsed(views.GcView, answer)

    def down(self, drain_s: float | None = None) -> views.Accepted:
        """Begin to close the cluster: return what is rented, stop all nodes, exit.

        Args:
            drain_s: How long running work may go on. Without it work is ended at once; when
                the cluster is going down already, what was asked before stays in force.
        """
        return self._asked("down", {"drain_s": drain_s, "owner": _owner()})

    # --- inside ----------------------------------------------------------------------------

    def _asked(self, path: str, body: Mapping[str, object]) -> views.Accepted:
        from hybrid.core import views

        # repeatable: each of them sets a goal, so asking twice is asking once
        answer = self._http.post(path, body, is_repeatable=True, read_s=READ_S)
        return _parsed(views.Accepted, answer)

    def _send(self, working_dir: str | Path) -> str:
        from hybrid.client.package import pack

        package = pack(working_dir)
        # Each time: a controller that was restarted has dropped what no live job uses.
        self._http.put(f"packages/{package.name}", package.content)
        return package.name


def _promise(checkpoint: Checkpoint | bool | None) -> dict[str, object] | None:  # noqa: FBT001
    if isinstance(checkpoint, bool):
        checkpoint = Checkpoint() if checkpoint else None
    return None if checkpoint is None else asdict(checkpoint)


def _parsed(model: type[M], content: bytes) -> M:
    """Return an answer as a model; fields of a newer controller are skipped."""
    return model.model_validate_json(content, extra="ignore")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for its user
        return ""


def _owner() -> str:
    return f"{_user() or 'somebody'}@{socket.gethostname()}"

"""What can be done with one host: look, join, leave. Each is one step with a time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import ValidationError

from hybrid.adapters.ssh_fleet.choosing import Choice
from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.adapters.ssh_fleet.judging import Wanted, judge
from hybrid.adapters.ssh_fleet.orders import fitted, orders
from hybrid.adapters.ssh_fleet.parcel import parcel
from hybrid.adapters.ssh_fleet.probing import Look, probe
from hybrid.adapters.ssh_fleet.records import Record, Records
from hybrid.adapters.ssh_fleet.refusals import HostUnfitError, RemoteFailedError, SshError
from hybrid.adapters.ssh_fleet.transport import Answer, Destination, Ssh, own_program
from hybrid.core.bootstrap import NodePlan
from hybrid.core.models import Model
from hybrid.core.ports import Clock

_LOOK_S, _PROBE_S, _JOIN_S, _LEAVE_S = 25.0, 45.0, 90.0, 60.0
_WORKING = ("booting", "joining", "starting", "running")


class NodeState(Model):
    """How the node on a host is.

    Attributes:
        phase: See `hybrid.node.folder.Phase`; `None` when there is none.
        problem: Why it does not run, although it was told to.
        kept_by: Who starts it after a reboot: `system`, `user`, or `""` for the controller.
    """

    phase: str | None = None
    is_alive: bool = False
    problem: str = ""
    pids: tuple[int, ...] = ()
    kept_by: str = ""

    @property
    def is_working(self) -> bool:
        """Whether it runs, or is about to."""
        return self.is_alive and self.phase in _WORKING


@dataclass(frozen=True)
class SshHost:
    """A host of the configuration.

    Attributes:
        plan: How its node is started, as far as the configuration says.
        wanted: What it must be.
    """

    name: str
    to: Destination
    plan: NodePlan
    wanted: Wanted


@dataclass(frozen=True)
class Site:
    """What the hosts of a cluster share.

    Attributes:
        cluster_id: First part of the mark of their processes.
        ray_token: The cluster's.
        look: What a host must reach before it joins.
    """

    cluster_id: str
    ray_token: Callable[[], str]
    look: Look
    ssh: Ssh
    records: Records
    clock: Clock


class Steps:
    """The steps with one host; none at the same time as another."""

    def __init__(self, host: SshHost, site: Site) -> None:
        self._host = host
        self._site = site

    def look(self) -> NodeState:
        """Return how the node is. Raises `SshError`."""
        return self._ask("look", {}, step="asking for its node", limit_s=_LOOK_S)

    def join(self) -> NodeState:
        """Start the node unless it runs. Idempotent.

        Raises:
            SshError: The host cannot be reached, or is not fit to join.
            FleetError: It cannot be noted here that it joins.
        """
        state = self.look()
        if state.is_working:
            return state
        host, site = self._host, self._site
        facts = probe(site.ssh, host.to, site.look, limit_s=_PROBE_S, clock=site.clock)
        choice = self._judged(facts)
        try:
            plan = fitted(host.plan, facts, choice, cluster_id=site.cluster_id, name=host.name)
        except ValidationError as err:
            raise HostUnfitError(
                f"host {host.name} cannot be given its node: "
                f"{err.errors(include_url=False)[0]['msg']}",
                "see `hybrid doctor`",
            ) from err
        self._claim(facts, choice, plan)
        told = orders(plan, choice, cluster_id=site.cluster_id, name=host.name)
        more = {"parcel": dict(parcel()), "orders": told, "ray_token": site.ray_token()}
        return self._ask("join", more, step="starting its node", limit_s=_JOIN_S)

    def _judged(self, facts: Facts) -> Choice:
        wanted = replace(self._host.wanted, is_head_up=False)  # both start at the same time
        blocking = [finding for finding in judge(facts, wanted) if finding.is_blocking]
        if blocking:
            raise HostUnfitError(
                f"host {self._host.name} cannot join: "
                + "; ".join(f"{finding.check}: {finding.found}" for finding in blocking),
                "; ".join(finding.remedy for finding in blocking),
            )
        return wanted.choose(facts.gpus)

    def _claim(self, facts: Facts, choice: Choice, plan: NodePlan) -> None:
        host, records = self._host, self._site.records
        before = records.read().get(host.name)
        if before is not None and before.address != host.to.address:
            self._end_where_it_was(before)
        record = Record(
            address=host.to.address,
            python=host.to.python,
            hostname=facts.hostname,
            identity=facts.identity,
            gpus=tuple(gpu.uuid for gpu in choice.taken),
            shape=plan.resources,
        )
        if (clash := records.claim(host.name, record)) is not None:
            other, shared = clash
            raise HostUnfitError(
                f"hosts {host.name} and {other} have {shared}, so it would count twice",
                f"correct the address of one of them, or remove {host.name}",
            )

    def _end_where_it_was(self, before: Record) -> None:
        name = self._host.name
        try:
            end_node(self._site, name, before)
        except SshError as error:
            raise type(error)(
                f"host {name} was at {before.address}, where its node must end first: "
                f"{error.found}",
                f"{error.remedy}; or, {_if_gone(self._site, name)}",
            ) from error

    def _ask(self, verb: str, more: Answer, *, step: str, limit_s: float) -> NodeState:
        host = self._host
        return _ask(self._site, host.name, host.to, verb, more, step=step, limit_s=limit_s)


def _if_gone(site: Site, name: str) -> str:
    return f"if that machine is gone for good, remove {site.records.path(name)}"


def leave(site: Site, name: str) -> None:
    """End the node of a host, if it may have one. Raises `FleetError`."""
    record = site.records.read().get(name)
    if record is None:
        return
    try:
        end_node(site, name, record)
    except SshError as error:
        raise type(error)(error.found, f"{error.remedy}; or, {_if_gone(site, name)}") from error


def end_node(site: Site, name: str, record: Record) -> None:
    """End a node on the machine where it was started. Raises `FleetError`."""
    to = Destination(record.address, record.python)
    more = {"parcel": dict(parcel())}
    _ask(site, name, to, "leave", more, step="ending its node", limit_s=_LEAVE_S)
    site.records.remove(name)


def _ask(
    site: Site,
    name: str,
    to: Destination,
    verb: str,
    more: Answer,
    *,
    step: str,
    limit_s: float,
) -> NodeState:
    arguments = {"verb": verb, "cluster_id": site.cluster_id, "name": name, **more}
    answer = site.ssh.run(to, own_program("node"), arguments, step=step, limit_s=limit_s)
    try:
        return NodeState.model_validate(answer)
    except ValidationError as err:
        raise RemoteFailedError(
            f"{to.address} told of its node in words that we do not know",
            "see ~/.hybrid/nodes there",
        ) from err

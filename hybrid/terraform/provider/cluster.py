"""`hybrid_cluster`: a cluster that runs."""

from __future__ import annotations

import threading

from hybrid.core.errors import HybridError
from hybrid.terraform.plugin import Diagnostics, Resource, attribute, block, is_known, make_schema
from hybrid.terraform.plugin.resource import Private
from hybrid.terraform.plugin.schema import Values
from hybrid.terraform.provider import checks, machine
from hybrid.terraform.provider.controller import Controller, RefusedError, UnreachableError
from hybrid.terraform.provider.settings import Link, NotRunningError

_CLOSE_S = 900.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class Cluster(Resource):
    """A cluster, started on this machine or adopted where a controller runs already."""

    schema = make_schema(
        block(
            {
                "id": attribute("string", "The name.", computed=True),
                "name": attribute(
                    "string",
                    "Names the cluster, its state folder and its tags.",
                    required=True,
                    replace=True,
                    check=checks.name,
                ),
                "config": attribute(
                    "string",
                    "What hybrid.yaml would say, without `name`: `yamlencode({...})` or "
                    "`file(...)`. Only where the provider has no address. A change restarts the "
                    "controller; nodes and running work stay.",
                    optional=True,
                ),
                "start_timeout": attribute(
                    "string",
                    "How long a start may take.",
                    optional=True,
                    computed=True,
                    default="5m",
                    check=checks.duration,
                ),
                "drain": attribute(
                    "string",
                    "How long running work may go on when the cluster is destroyed.",
                    optional=True,
                    computed=True,
                    default="5m",
                    check=checks.duration,
                ),
                "address": attribute("string", "Where the controller listens.", computed=True),
                "dashboard_url": attribute("string", "Ray's dashboard.", computed=True),
            },
            text="A running cluster. Destroying it drains it, returns all that is rented and stops "
            "its nodes.",
        )
    )

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._planned: set[str] = set()

    def plan(
        self, diagnostics: Diagnostics, prior: Values | None, proposed: Values, config: Values
    ) -> Values:
        """Let hybrid check the configuration before anything is made."""
        if config["config"] is not None and self._link.is_remote:
            diagnostics.error(
                "`config` belongs to a cluster that this machine starts",
                "The provider has the address of a controller that runs already, with a file of "
                "its own; leave `config` out, and use hybrid_cloud and hybrid_burst_policy.",
                at=("config",),
            )
        if is_known(proposed["name"]) and self._is_planned_twice(prior, proposed["name"]):
            diagnostics.error(
                f"Two hybrid_cluster are named {proposed['name']!r}",
                "They would be one cluster, and destroying one would end the other; give each a "
                "name of its own.",
                at=("name",),
            )
        is_new = prior is None or prior["config"] != proposed["config"]
        is_here = is_new and not self._link.is_remote
        if is_here and is_known(proposed["config"]) and is_known(proposed["name"]):
            for problem in machine.problems(proposed["name"], proposed["config"]):
                diagnostics.error(problem, at=("config",))
        return proposed

    def _is_planned_twice(self, prior: Values | None, name: str) -> bool:
        """Return whether this walk of Terraform has planned another cluster of that name.

        Terraform starts the provider anew for each walk, and plans each resource in it once; one
        that gets another name is planned twice, first with the old one before it.
        """
        if prior is not None and prior["name"] != name:
            return False
        with self._lock:
            is_twice = name in self._planned
            self._planned.add(name)
        return is_twice

    def create(self, diagnostics: Diagnostics, planned: Values, private: Private) -> Values:
        """Start it; one that runs under its name already is adopted."""
        state = {**planned, "id": planned["name"], "address": None, "dashboard_url": None}
        if self._link.is_remote:
            self._check_name(planned["name"])
        else:
            try:
                self._bring_up(planned)
            except machine.StoppedError as error:
                diagnostics.error(
                    str(error),
                    "The cluster may be half up. It is kept in the state, as tainted: the next "
                    "`terraform apply` replaces it, `terraform destroy` ends it.",
                )
                return state
            except machine.CommandError as error:
                if machine.running(planned["name"]) is None:
                    raise
                diagnostics.error("The cluster did not get ready", str(error))
                return state
        return self._seen(state)

    def read(self, diagnostics: Diagnostics, state: Values, private: Private) -> Values | None:
        """See `Resource.read`; a cluster whose controller is gone is gone."""
        try:
            if not self._link.is_remote:
                controller = self._link.controller(state["name"])
                record = machine.running(state["name"])
                if record is not None and record.url == controller.url:
                    state = {**state, "config": machine.config_of(record)}
            return self._seen(state)
        except NotRunningError:
            return None

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: Private
    ) -> Values:
        """Bring the running cluster in line with a changed configuration."""
        if not self._link.is_remote and prior["config"] != planned["config"]:
            self._bring_up(planned)
        return self._seen(planned)

    def delete(self, diagnostics: Diagnostics, state: Values, private: Private) -> None:
        """Drain it, return what is rented, stop its nodes."""
        name = state["name"]
        if self._link.is_remote:
            self._close(state)
            return
        file = machine.file_of(name)
        if machine.running(name) is None and not machine.state_dir(name).exists():
            return
        if not file.exists():
            machine.write(name, state["config"])
        machine.run(["down", str(file), "--yes", "--drain", state["drain"]], self._link.stopping)
        file.unlink(missing_ok=True)

    def import_(self, diagnostics: Diagnostics, identity: str) -> Values | None:
        """Take over a running cluster by its name."""
        if problem := checks.name(identity):
            diagnostics.error(problem)
            return None
        if self._link.is_remote:
            self._check_name(identity)
        else:
            self._link.controller(identity)
        return {"id": identity, "name": identity, "drain": "5m", "start_timeout": "5m"}

    def _bring_up(self, planned: Values) -> None:
        path = machine.write(planned["name"], planned["config"])
        words = ["up", str(path), "--yes", "--timeout", planned["start_timeout"]]
        with self._link.lock:
            machine.run(words, self._link.stopping)

    def _seen(self, state: Values) -> Values:
        controller = self._link.controller(state["name"])
        cluster = controller.get("status")["cluster"]
        return {
            **state,
            "id": state["name"],
            "address": controller.url,
            "dashboard_url": cluster["dashboard_url"],
        }

    def _check_name(self, name: str) -> Controller:
        controller = self._link.controller(name)
        there = controller.get("status")["cluster"]["name"]
        if there != name:
            raise RefusedError(
                f"the controller at {controller.url} runs cluster {there!r}, not {name!r}; correct "
                "`name`, or the provider's `address`"
            )
        return controller

    def _close(self, state: Values) -> None:
        controller = self._link.controller(state["name"])
        drain_s = seconds(state["drain"])
        try:
            controller.post("down", {"drain_s": drain_s, "owner": "terraform"})
        except UnreachableError:
            if not controller.is_there():
                return
            raise
        if not controller.wait(lambda: not controller.is_there(), drain_s + _CLOSE_S):
            raise HybridError(
                f"closing {state['name']} takes longer; it goes on. `terraform destroy` again "
                "watches it"
            )


def seconds(text: str) -> float:
    """Return a duration that `checks.duration` accepts, in seconds."""
    import re

    found = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    return sum(float(count) * (0.001 if unit == "ms" else _UNITS[unit]) for count, unit in found)

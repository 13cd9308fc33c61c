"""`hybrid_cloud`: one cloud account that a cluster may rent from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hybrid.core.errors import HybridError
from hybrid.terraform.plugin import (
    UNKNOWN,
    Diagnostics,
    Resource,
    attribute,
    block,
    dynamic,
    is_known,
    make_schema,
)
from hybrid.terraform.plugin.resource import Private
from hybrid.terraform.plugin.schema import Values
from hybrid.terraform.provider import checks, layer
from hybrid.terraform.provider.cluster import seconds
from hybrid.terraform.provider.controller import RefusedError
from hybrid.terraform.provider.settings import Link, NotRunningError

_PREFIX = "cloud-"
_PROVIDER, _POOLS = "provider", "pools"


class Cloud(Resource):
    """A cloud account and its pools, as a module's output `hybrid_provider` describes them."""

    schema = make_schema(
        block(
            {
                "id": attribute("string", "`CLUSTER/NAME`.", computed=True),
                "cluster": attribute(
                    "string", "Name of the cluster.", required=True, replace=True, check=checks.name
                ),
                "name": attribute(
                    "string",
                    "Names it among the clouds of its cluster.",
                    required=True,
                    replace=True,
                    check=checks.cloud_name,
                ),
                "hybrid_provider": attribute(
                    "dynamic",
                    "A module's output `hybrid_provider`: an object with `provider`, the keys of "
                    "`providers.NAME` in hybrid.yaml, and `pools`.",
                    required=True,
                ),
                "drain": attribute(
                    "string",
                    "How long work on rented nodes may go on when this cloud is destroyed.",
                    optional=True,
                    computed=True,
                    default="5m",
                    check=checks.duration,
                ),
                "provider_name": attribute("string", "`aws`, `gcp`, `baidu`, ...", computed=True),
            },
            text="One cloud that a cluster may rent from. Destroying it drains what is rented "
            "there first.",
        )
    )

    def __init__(self, link: Link) -> None:
        self._link = link

    def validate(self, diagnostics: Diagnostics, config: Values) -> None:
        """Refuse what is no output of a module."""
        said = dynamic.plain(config["hybrid_provider"])
        if not is_known(said):
            return
        if not isinstance(said, Mapping) or _PROVIDER not in said:
            diagnostics.error(
                "hybrid_provider is no object with `provider`",
                "Pass a module's output: hybrid_provider = module.aws.hybrid_provider",
                at=("hybrid_provider",),
            )

    def plan(
        self, diagnostics: Diagnostics, prior: Values | None, proposed: Values, config: Values
    ) -> Values:
        """Fill in what the output says already."""
        said = dynamic.plain(proposed["hybrid_provider"])
        name = said.get(_PROVIDER) if isinstance(said, Mapping) else UNKNOWN
        planned = {**proposed, "provider_name": name}
        if is_known(planned["cluster"]) and is_known(planned["name"]):
            planned["id"] = f"{planned['cluster']}/{planned['name']}"
        return planned

    def create(self, diagnostics: Diagnostics, planned: Values, private: Private) -> Values:
        """Lay it over the cluster's configuration; one of its name is adopted."""
        said = dynamic.plain(planned["hybrid_provider"])
        layer.lay(self._link, planned["cluster"], _name(planned), "hybrid_cloud", _content(said))
        identity = f"{planned['cluster']}/{planned['name']}"
        return {**planned, "id": identity, "provider_name": said[_PROVIDER]}

    def read(self, diagnostics: Diagnostics, state: Values, private: Private) -> Values | None:
        """See `Resource.read`."""
        try:
            content = layer.found(self._link, state["cluster"], _name(state))
        except NotRunningError:
            return None
        if content is None:
            return None
        there = _value(content)
        if _tidy(there) != _tidy(dynamic.plain(state["hybrid_provider"])):
            state = {**state, "hybrid_provider": dynamic.of_plain(there)}
        return {**state, "provider_name": there.get(_PROVIDER)}

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: Private
    ) -> Values:
        """See `Resource.update`."""
        return self.create(diagnostics, planned, private)

    def delete(self, diagnostics: Diagnostics, state: Values, private: Private) -> None:
        """Drain what is rented there, then take the cloud away."""
        try:
            self._drain(state)
            layer.take_away(self._link, state["cluster"], _name(state))
        except NotRunningError:
            return

    def import_(self, diagnostics: Diagnostics, identity: str) -> Values | None:
        """Take over a cloud as `CLUSTER/NAME`."""
        cluster, _, name = identity.partition("/")
        content = layer.found(self._link, cluster, f"{_PREFIX}{name}") if name else None
        if content is None:
            diagnostics.error(
                f"There is no cloud {identity!r}", "Write CLUSTER/NAME of one that exists."
            )
            return None
        return {
            "id": identity,
            "cluster": cluster,
            "name": name,
            "drain": "5m",
            "hybrid_provider": dynamic.of_plain(_value(content)),
        }

    def _drain(self, state: Values) -> None:
        """Let this cloud's instances end, and wait until none is left."""
        controller, drain_s = self._link.controller(state["cluster"]), seconds(state["drain"])

        def rented() -> list[str]:
            found = controller.get("instances")["instances"]
            return [
                item["instance_id"]
                for item in found
                if item["provider"] == state["provider_name"] and item["ended_at_s"] is None
            ]

        if not rented():
            return
        # Nothing new meanwhile. The pools stay until all have ended: a controller looks for
        # instances only where it has pools, and starts with no place missing.
        content = layer.found(self._link, state["cluster"], _name(state)) or {}
        closed = [{**pool, "max_nodes": 0} for pool in content.get(_POOLS, ())]
        layer.lay(
            self._link, state["cluster"], _name(state), "hybrid_cloud", {**content, _POOLS: closed}
        )
        for instance_id in rented():
            # Refused when it leaves already, of itself; if it does not, the wait below says so.
            with suppress(RefusedError):
                controller.post(
                    "drain", {"target": instance_id, "deadline_s": drain_s, "owner": "terraform"}
                )
        if not controller.wait(lambda: not rented(), drain_s + 600.0):
            raise HybridError(
                f"instances of {state['name']} are still ending; `terraform destroy` again watches"
            )


def _name(values: Values) -> str:
    return f"{_PREFIX}{values['name']}"


def _content(said: Mapping[str, Any]) -> dict[str, Any]:
    account = {k: v for k, v in said.items() if k not in (_PROVIDER, _POOLS)}
    content: dict[str, Any] = {"providers": {said[_PROVIDER]: account}}
    return content | ({_POOLS: said[_POOLS]} if said.get(_POOLS) else {})


def _value(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer's content as the output it came from."""
    for name, account in (content.get("providers") or {}).items():
        pools = {_POOLS: content[_POOLS]} if content.get(_POOLS) else {}
        return {_PROVIDER: name, **account, **pools}
    return {}


def _tidy(value: object) -> object:
    """Return a value without nulls and without empty lists, which say nothing."""
    if isinstance(value, Mapping):
        tidy = {key: _tidy(item) for key, item in value.items()}
        return {key: item for key, item in tidy.items() if item not in (None, [])}
    if isinstance(value, list | tuple):
        return [_tidy(item) for item in value]
    return value

"""`hybrid_burst_policy`: when a cluster rents, when it returns, and what it may spend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid.terraform.plugin import Diagnostics, Resource, attribute, block, make_schema, nested
from hybrid.terraform.plugin.resource import Private
from hybrid.terraform.plugin.schema import Values
from hybrid.terraform.provider import checks, layer
from hybrid.terraform.provider.settings import Link, NotRunningError

_LAYER = "policy"
_PATHS: Mapping[str, tuple[str, ...]] = {
    "max_wait": ("burst", "queue", "max_wait"),
    "stabilisation": ("burst", "stabilisation"),
    "idle_after": ("idle", "after"),
    "min_life": ("idle", "min_life"),
    "drain_deadline": ("drain", "deadline"),
    "lease_length": ("lease", "length"),
}
"""Attribute -> its place in hybrid.yaml."""

_TEXTS = {
    "max_wait": "Work that waits longer than this makes the cluster rent.",
    "stabilisation": "How long that must last before anything is rented.",
    "idle_after": "A rented node that is idle this long is returned.",
    "min_life": "But not before this age.",
    "drain_deadline": "How long work on a node that must leave may go on.",
    "lease_length": "Rented nodes end themselves when the controller was silent this long.",
}
_CAPS = {
    "nodes": ("Rented instances at a time.", checks.whole),
    "gpus": ("Rented GPUs at a time.", checks.whole),
    "usd_per_hour": ("Sum of the prices of all that is rented.", checks.at_least_zero),
    "usd_per_day": ("Spend per calendar day, UTC.", checks.at_least_zero),
    "usd_per_month": ("Spend per calendar month, UTC.", checks.at_least_zero),
}


class BurstPolicy(Resource):
    """The policy of one cluster; what it leaves out is as in the cluster's file."""

    schema = make_schema(
        block(
            {
                "id": attribute("string", "The cluster.", computed=True),
                "cluster": attribute(
                    "string", "Name of the cluster.", required=True, replace=True, check=checks.name
                ),
                **{
                    name: attribute("string", text, optional=True, check=checks.duration)
                    for name, text in _TEXTS.items()
                },
                "budget": nested(
                    "single",
                    {
                        name: attribute("number", text, optional=True, check=check)
                        for name, (text, check) in _CAPS.items()
                    },
                    "Hard caps, reserved before each launch.",
                    optional=True,
                ),
            },
            text="When a cluster rents, when it returns, and what it may spend. One per cluster.",
        )
    )

    def __init__(self, link: Link) -> None:
        self._link = link

    def plan(
        self, diagnostics: Diagnostics, prior: Values | None, proposed: Values, config: Values
    ) -> Values:
        """See `Resource.plan`."""
        return {**proposed, "id": proposed["cluster"]}

    def create(self, diagnostics: Diagnostics, planned: Values, private: Private) -> Values:
        """Lay it over the cluster's configuration; one that is there is adopted."""
        content = _content(planned)
        layer.lay(self._link, planned["cluster"], _LAYER, "hybrid_burst_policy", content)
        return {**planned, "id": planned["cluster"]}

    def read(self, diagnostics: Diagnostics, state: Values, private: Private) -> Values | None:
        """See `Resource.read`."""
        try:
            content = layer.found(self._link, state["cluster"], _LAYER)
        except NotRunningError:
            return None
        return None if content is None else {**state, **_values(content)}

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: Private
    ) -> Values:
        """See `Resource.update`."""
        return self.create(diagnostics, planned, private)

    def delete(self, diagnostics: Diagnostics, state: Values, private: Private) -> None:
        """Let the cluster's file decide again."""
        try:
            layer.take_away(self._link, state["cluster"], _LAYER)
        except NotRunningError:
            return

    def import_(self, diagnostics: Diagnostics, identity: str) -> Values | None:
        """Take over the policy of a cluster."""
        content = layer.found(self._link, identity, _LAYER)
        if content is None:
            diagnostics.error(f"Cluster {identity!r} has no policy of Terraform's")
            return None
        return {"id": identity, "cluster": identity, **_values(content)}


def _content(values: Values) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, path in _PATHS.items():
        if values[name] is None:
            continue
        place = content
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = values[name]
    budget = {key: value for key, value in (values["budget"] or {}).items() if value is not None}
    return content | ({"budget": budget} if budget else {})


def _values(content: Mapping[str, Any]) -> Values:
    values: Values = {}
    for name, path in _PATHS.items():
        place: Any = content
        for key in path:
            place = place.get(key) if isinstance(place, Mapping) else None
        values[name] = place
    budget = content.get("budget")
    values["budget"] = {key: budget.get(key) for key in _CAPS} if budget else None
    return values

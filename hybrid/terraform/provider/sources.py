"""Data sources: how a cluster is, and what the clouds offer."""

from __future__ import annotations

from hybrid.terraform.plugin import DataSource, Diagnostics, attribute, block, make_schema, nested
from hybrid.terraform.plugin.schema import Values
from hybrid.terraform.provider import checks, machine
from hybrid.terraform.provider.settings import Link

_FIELDS = {
    "provider": ("string", "Cloud."),
    "region": ("string", "Region."),
    "instance_type": ("string", "Type of machine."),
    "market": ("string", "`spot` or `on_demand`."),
    "gpu": ("string", "Name of its GPUs."),
    "gpu_count": ("number", "How many."),
    "usd_per_hour": ("number", "Its price."),
    "usd_per_gpu_hour": ("number", "Its price by GPU."),
}


class Status(DataSource):
    """`hybrid_status`."""

    schema = make_schema(
        block(
            {
                "cluster": attribute(
                    "string", "Name of the cluster.", required=True, check=checks.name
                ),
                "summary": attribute("string", "One sentence.", computed=True),
                "state": attribute(
                    "string",
                    "`starting`, `ready`, `degraded` or `closing`.",
                    computed=True,
                ),
                "is_bursting": attribute("bool", "Whether anything is rented.", computed=True),
                "address": attribute("string", "Where the controller listens.", computed=True),
                "dashboard_url": attribute("string", "Ray's dashboard.", computed=True),
                "node_count": attribute("number", "Nodes of all sites.", computed=True),
                "gpu_count": attribute("number", "GPUs of all nodes.", computed=True),
                "rented_count": attribute("number", "Rented instances.", computed=True),
                "usd_per_hour": attribute("number", "Sum of their prices.", computed=True),
            },
            text="How a running cluster is.",
        )
    )

    def __init__(self, link: Link) -> None:
        self._link = link

    def read(self, diagnostics: Diagnostics, config: Values) -> Values:
        """See `DataSource.read`."""
        controller = self._link.controller(config["cluster"])
        view = controller.get("status")
        live = [item for item in view["instances"] if item["ended_at_s"] is None]
        return {
            **config,
            "summary": view["summary"],
            "state": view["controller"]["state"],
            "is_bursting": view["is_bursting"],
            "address": controller.url,
            "dashboard_url": view["cluster"]["dashboard_url"],
            "node_count": len(view["nodes"]),
            "gpu_count": sum(node["gpus_total"] for node in view["nodes"]),
            "rented_count": len(live),
            "usd_per_hour": sum(item["usd_per_hour"] for item in live),
        }


class Offers(DataSource):
    """`hybrid_offers`."""

    schema = make_schema(
        block(
            {
                "gpus": attribute(
                    "string", "GPUs of one machine, such as `A100:8`.", optional=True
                ),
                "infra": attribute(
                    "string", "Where, such as `aws,gcp/us-central1`.", optional=True
                ),
                "is_spot": attribute("bool", "Spot prices only, or none of them.", optional=True),
                "limit": attribute(
                    "number",
                    "At most so many.",
                    optional=True,
                    computed=True,
                    check=checks.whole,
                ),
                "offers": nested(
                    "list",
                    {
                        name: attribute(kind, text, computed=True)
                        for name, (kind, text) in _FIELDS.items()
                    },
                    "The cheapest first.",
                    computed=True,
                ),
            },
            text="What the clouds rent and what it costs, from the price lists that come with "
            "hybrid; no cloud is asked.",
        )
    )

    def __init__(self, link: Link) -> None:
        self._link = link

    def read(self, diagnostics: Diagnostics, config: Values) -> Values:
        """See `DataSource.read`."""
        limit = 20 if config["limit"] is None else config["limit"]
        words = ["--limit", str(max(1, limit))]
        words += ["--gpus", config["gpus"]] if config["gpus"] else []
        words += ["--infra", config["infra"]] if config["infra"] else []
        if config["is_spot"] is not None:
            words.append("--spot" if config["is_spot"] else "--on-demand")
        listed = machine.offers(words, self._link.stopping)
        shown = [{name: offer[name] for name in _FIELDS} for offer in listed]
        return {**config, "limit": limit, "offers": shown}

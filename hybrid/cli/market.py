"""What the running cluster, or the file, says of its own offers, for `hybrid offers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hybrid.cli import output
from hybrid.cli.options import chosen

if TYPE_CHECKING:
    import typer

    from hybrid.core.ports import Clock
    from hybrid.settings import Settings


def of_cluster(context: typer.Context) -> Mapping[str, object]:
    """Return `cluster`, `resting` and `withheld` of the running cluster; nothing without one.

    Raises:
        NoClusterError: The cluster that was named on the command line does not run.
    """
    from hybrid.client import discover
    from hybrid.client.errors import NoClusterError
    from hybrid.core.errors import HybridError

    name = chosen(context)
    try:
        discover.find(cluster=name)
        from hybrid.client import Client

        with Client(cluster=name) as client:
            view = client.status()
    except NoClusterError:
        if name:
            raise
        return {}
    except HybridError as error:  # prices are known without it
        output.say(f"Note: what rests in a running cluster is not shown: {error}")
        return {}
    return {
        "cluster": view.cluster.name,
        "resting": view.plan.resting,
        "withheld": view.plan.withheld,
    }


def of_file(settings: Settings | None, clock: Clock) -> Mapping[str, object]:
    """Return `withheld` of the file's pools, by the catalog alone; nothing without a file."""
    from hybrid.app import offline
    from hybrid.core.models.withheld import Withheld
    from hybrid.settings import SettingsError
    from hybrid.settings.places import EMBEDDED

    if settings is None or settings.source == EMBEDDED:
        return {}
    try:
        offered = offline.pool_offers(settings, clock)
    except SettingsError:
        output.say(
            f"Note: which pools of {settings.source} are no offer is not shown, since `hybrid "
            "config validate` has something to say about them."
        )
        return {}
    return {"withheld": tuple(item.said for item in offered if isinstance(item.said, Withheld))}

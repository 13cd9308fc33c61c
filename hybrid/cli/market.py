"""What the running cluster says of its offers, for `hybrid offers`, which needs none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hybrid.cli import output
from hybrid.cli.options import chosen

if TYPE_CHECKING:
    import typer


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

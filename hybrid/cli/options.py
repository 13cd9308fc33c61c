"""Options that several commands share, and the cluster that is meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hybrid.client import Client
    from hybrid.settings import Settings


def _remember(context: typer.Context, value: str) -> str:
    if value:
        context.find_root().obj = value
    return value


def _known_clusters() -> Iterable[str]:
    from hybrid.client import discover
    from hybrid.core.errors import ConfigError

    try:
        return [record.cluster for record in discover.records()]
    except ConfigError:  # nothing to offer; the command itself will say why
        return ()


def _seconds(value: str) -> str:
    """Refuse what is not a duration, where the name of the option is known."""
    from hybrid.core.quantity import duration_s

    if value:
        try:
            duration_s(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return value


Cluster = Annotated[
    str,
    typer.Option(
        "--cluster",
        "-c",
        metavar="NAME",
        help="Which cluster, when several run; or HYBRID_CLUSTER.",
        callback=_remember,
        autocompletion=_known_clusters,
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the API's JSON. See docs/json.md.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def duration_option(*names: str, help: str, default: str = "") -> object:  # noqa: A002 - Typer's word
    """Return an option that takes a duration such as `10m`."""
    return typer.Option(
        *names, metavar="DURATION", help=help, callback=_seconds, show_default=bool(default)
    )


def is_gpus(value: str) -> str:
    """Refuse what is not a GPU request, where the name of the option is known."""
    from hybrid.core.gpu_names import request

    if value:
        try:
            request(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return value


def seconds(value: str) -> float | None:
    """Return the seconds of a duration option, `None` when it was not given."""
    from hybrid.core.quantity import duration_s

    return duration_s(value) if value else None


def chosen(context: typer.Context) -> str:
    """Return the cluster that was named on the command line, or `""`."""
    return str(context.find_root().obj or "")


def agree(context: typer.Context, settings: Settings) -> None:
    """Refuse a cluster that was named beside a file of another cluster.

    Raises:
        StopError: They are not the same.
    """
    from hybrid.cli.exits import ExitCode, StopError
    from hybrid.client import discover

    name = chosen(context)
    if name in ("", settings.name):
        return
    if "/" in name and discover.state_dir_of(name).resolve() == settings.state_path.resolve():
        return
    raise StopError(
        f"--cluster {name} and `name: {settings.name}` in {settings.source} differ; "
        "drop one of them",
        ExitCode.USAGE,
    )


def connect(context: typer.Context) -> Client:
    """Return a client of the cluster that is meant."""
    from hybrid.client import Client

    return Client(cluster=chosen(context))

"""All commands of `hybrid`, put together."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.main import get_command

import hybrid
from hybrid.cli import (
    advise,
    audit,
    config,
    cost,
    data,
    doctor,
    down,
    env,
    events,
    jobs,
    nodes,
    offers,
    operate,
    options,
    plan,
    sim,
    status,
    submit,
    terraform,
    trace,
    up,
    version,
)
from hybrid.cli.help import Grouped

app = typer.Typer(
    name="hybrid",
    cls=Grouped,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: quick, and readable in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"hybrid {hybrid.__version__}")
        raise typer.Exit


@app.callback()
def _global(
    _cluster: options.Cluster = "",
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """One Ray cluster over your own GPU machines and your cloud accounts."""


for _module in (
    up,
    down,
    status,
    nodes,
    plan,
    offers,
    submit,
    jobs,
    audit,
    env,
    operate,
    events,
    cost,
    trace,
    sim,
    advise,
    data,
    config,
    terraform,
    doctor,
    version,
):
    _module.register(app)


def run(words: list[str]) -> None:
    """Parse `words`, run the command, and raise `SystemExit` or a `HybridError`."""
    get_command(app)(words, prog_name="hybrid")

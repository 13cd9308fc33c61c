"""`hybrid drain`, `pause`, `resume` and `gc`: the operator's verbs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.asking import confirm
from hybrid.cli.exits import StopError
from hybrid.cli.options import Cluster, Json, Yes, connect, duration_option, seconds
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.core.views import Accepted, GcItem, GcView


class Direction(StrEnum):
    """What is paused: launches, scale-in, both, or every change."""

    OUT = "out"
    IN = "in"
    ALL = "all"
    DRY_RUN = "dry-run"


WhichWay = Annotated[
    Direction,
    typer.Argument(help="Launches (out), scale-in (in), both (all), or every change (dry-run)."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("drain")(drain)
    app.command("pause")(pause)
    app.command("resume")(resume)
    app.command("gc")(gc)


def drain(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="Instance, node, or the start of its id.")],
    deadline: Annotated[
        str,
        duration_option("--deadline", help="Running work is ended then; as configured if absent."),
    ] = "",
    yes: Yes = False,
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Empty a node: no new work, then a rented one is returned."""
    client = connect(context)
    client.status()  # nobody is asked about a cluster that is not there
    deadline_s = seconds(deadline)
    until = f"in {words.duration(deadline_s)}" if deadline_s is not None else "at the deadline"
    confirm(f"Drain {target}? Work that still runs {until} is ended.", is_yes=yes)
    _told(client.drain(target, deadline_s), is_json=json)


def pause(
    context: typer.Context, direction: WhichWay, json: Json = False, _cluster: Cluster = ""
) -> None:
    """Stop launches (out), scale-in (in), both (all), or every change (dry-run).

    In a dry run the controller decides and says what it would do, and changes nothing.
    """
    _told(connect(context).pause(direction.value), is_json=json)


def resume(
    context: typer.Context,
    direction: WhichWay = Direction.ALL,
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Undo `hybrid pause`; all undoes a dry run, too."""
    _told(connect(context).resume(direction.value), is_json=json)


def gc(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look only.")] = False,
    yes: Yes = False,
    json: Json = False,
    _cluster: Cluster = "",
) -> None:
    """Find instances of ours that nothing knows, in all clouds, and end them.

    Exit code 1 when a cloud cannot be read, or one of them cannot be ended.
    """
    client = connect(context)
    if not dry_run:
        client.status()
        confirm("End every orphan of this cluster? `--dry-run` shows them.", is_yes=yes)
    view = client.gc(dry_run=dry_run)
    if json:
        output.write(view.model_dump_json().encode())
    elif view.items:
        columns = ("PROVIDER", "ID", "INSTANCE", Column("AGE", is_number=True), "VERDICT", "ENDED")
        output.show(table(columns, (_gc_row(item) for item in view.items)))
    else:
        output.show(text("No orphans in what could be read." if view.unreadable else "No orphans."))
    if problems := list(_gc_problems(view)):
        raise StopError("\n".join(problems))


def _gc_problems(view: GcView) -> Iterator[str]:
    """Yield why nobody can say that no orphan is left."""
    for source in view.unreadable:
        problem = words.safe(source.problem)
        yield f"{source.name} cannot be read, so its orphans are unknown: {problem}"
    left = [i for i in view.items if i.verdict == "orphan" and not i.is_terminated]
    if left and not view.is_dry_run:
        names = ", ".join(f"{item.provider} {item.provider_id}" for item in left)
        yield (
            f"not ended: {names}. `hybrid events` says why; the controller tries again by itself, "
            "and so does another `hybrid gc`"
        )


def _told(answer: Accepted, *, is_json: bool) -> None:
    if is_json:
        output.write(answer.model_dump_json().encode())
    else:
        output.show(text(answer.message or "accepted"))


def _gc_row(item: GcItem) -> Sequence[str]:
    return (
        item.provider,
        item.provider_id or words.NONE,
        item.instance_id or words.NONE,
        words.duration(item.age_s),
        item.verdict,
        "yes" if item.is_terminated else "no",
    )

"""Writes the generated parts of json.md, cli.md and others in docs/; `MADE` lists them.

`python -m tests.cli.documents` after a change of a model, a command or an option.
"""

from __future__ import annotations

import datetime as dt
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from typer.main import get_command

from hybrid.api.bodies import HealthView
from hybrid.cli.app import app
from hybrid.cli.help import GROUPS
from hybrid.core.models import Event, Job
from hybrid.core.offline import OfflinePlanView
from hybrid.core.views import (
    Accepted,
    AuditView,
    CostView,
    DataPlanView,
    EventsView,
    GcView,
    InstancesView,
    JobsView,
    NodesView,
    OffersView,
    PlanView,
    StatusView,
)
from hybrid.sim.advise.advice import AdviceView
from hybrid.sim.bench.view import BenchView
from hybrid.sim.bounds.report import BoundsView
from hybrid.sim.recorded.replay import ReplayView
from hybrid.sim.runs import SimRunsView
from hybrid.sim.services.compare import ServiceComparison
from hybrid.sim.traces.summary import TraceView
from tests.cli.reference import configuration, python
from tests.cli.terraform_reference import terraform

DOCS = Path(__file__).parents[2] / "docs"
BEGIN = "<!-- made by `python -m tests.cli.documents`, and compared by a test -->"
END = "<!-- end of what is made -->"

COMMANDS: Sequence[tuple[str, str, type[BaseModel]]] = (
    ("hybrid status --json", "GET /api/v1/status", StatusView),
    ("hybrid nodes --json", "GET /api/v1/nodes", NodesView),
    ("hybrid plan --json", "GET /api/v1/plan", PlanView),
    ("hybrid plan --offline --json", "(command line only)", OfflinePlanView),
    ("hybrid jobs --json", "GET /api/v1/jobs?limit=", JobsView),
    ("hybrid submit --json, hybrid cancel --json", "GET /api/v1/jobs/ID", Job),
    ("hybrid events --json", "GET /api/v1/events?after=&limit=&subject=", EventsView),
    ("hybrid events --follow --json", "one line for each event", Event),
    ("hybrid cost --json", "GET /api/v1/cost?since=", CostView),
    ("hybrid offers --json", "(command line only)", OffersView),
    ("hybrid gc --json", "POST /api/v1/gc", GcView),
    ("hybrid drain, pause, resume --json", "POST /api/v1/drain, pause, resume", Accepted),
    (
        "hybrid trace import, hybrid trace show, hybrid trace record --json",
        "(command line only)",
        TraceView,
    ),
    ("hybrid data plan --json", "(command line only)", DataPlanView),
    ("hybrid audit --json", "GET /api/v1/jobs/ID/audit", AuditView),
    ("hybrid advise --json", "(command line only)", AdviceView),
    ("hybrid sim run, hybrid sim compare --json", "(command line only)", SimRunsView),
    ("hybrid sim bench --json", "(command line only)", BenchView),
    ("hybrid sim bound --json", "(command line only)", BoundsView),
    ("hybrid sim service --json", "(command line only)", ServiceComparison),
    ("hybrid sim replay --json", "(command line only)", ReplayView),
    ("(API only)", "GET /api/v1/instances?limit=", InstancesView),
    ("(API only)", "GET /healthz, no token", HealthView),
)


def shapes() -> str:
    """Return the part of docs/json.md that lists commands and models."""
    parts = ["## Commands\n", "| Command | API | Answer |", "|---|---|---|"]
    parts += [
        f"| `{command}` | `{path}` | [{model.__name__}](#{model.__name__.lower()}) |"
        for command, path, model in COMMANDS
    ]
    parts += ["", "## Shapes\n"]
    for model in _all_models([model for _, _, model in COMMANDS]):
        parts += _model_lines(model)
    return "\n".join(parts).rstrip()


def reference() -> str:
    """Return the part of docs/cli.md that lists all commands and options."""
    group = get_command(app)
    context = typer.Context(group, info_name="hybrid", terminal_width=90, max_content_width=90)
    parts = ["```text", group.get_help(context), "```"]
    commands: Mapping[str, Any] = group.commands  # type: ignore[attr-defined]
    for name in [name for names in GROUPS.values() for name in names]:
        parts += ["", f"### hybrid {name}"]
        parts += _help_lines(commands[name], name, context)
        for inner, command in getattr(commands[name], "commands", {}).items():
            parts += ["", f"#### hybrid {name} {inner}"]
            above = _context(commands[name], name, context)
            parts += _help_lines(command, inner, above)
    return "\n".join(parts)


def refreshed(page: str, made: str) -> str:
    """Return a page with its generated part replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{made}\n\n{END}{tail}"


def _help_lines(command: Any, name: str, above: Any) -> list[str]:
    return ["", "```text", command.get_help(_context(command, name, above)).rstrip(), "```"]


def _context(command: Any, name: str, above: Any) -> typer.Context:
    return typer.Context(
        command,
        info_name=name,
        parent=above,
        terminal_width=90,
        max_content_width=90,
        help_option_names=["-h", "--help"],
    )


def _all_models(roots: Sequence[type[BaseModel]]) -> list[type[BaseModel]]:
    """Return the models and those inside them, each once, in order of first use."""
    found: list[type[BaseModel]] = []
    waiting = list(roots)
    while waiting:
        model = waiting.pop(0)
        if model not in found:
            found.append(model)
            for info in model.model_fields.values():
                waiting += _models_in(info.annotation)
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        if not isinstance(inner, str):
            yield from _models_in(inner)


def _model_lines(model: type[BaseModel]) -> list[str]:
    said = meanings(model)
    first = (inspect.getdoc(model) or "").split("\n\n")[0].replace("\n", " ")
    lines = [f"### {model.__name__}\n", f"{first}\n", "| Field | Type | Meaning |", "|---|---|---|"]
    for name, info in model.model_fields.items():
        shown = _type_text(info.annotation).replace("|", "\\|")
        lines.append(f"| `{name}` | {shown} | {said.get(name, '')} |")
    return [*lines, ""]


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return what the docstring's `Attributes` say, by field."""
    _, _, section = (inspect.getdoc(model) or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if match := re.match(r"    (\w[\w, ]*): (.*)", line):
            names = match[1].split(", ")
            found |= dict.fromkeys(names, match[2])
        elif line.startswith("        "):
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: text.replace("|", "\\|") for name, text in found.items()}


def _type_text(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_text(inner[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(item) for item in inner)
    if origin is tuple:
        return f"list of {_type_text(inner[0])}"
    if origin in (Mapping, typing.Mapping, dict):
        return f"map of string to {_type_text(inner[1])}"
    if origin is Literal:
        return ", ".join(f"`{value!r}`".replace("'", '"') for value in inner)
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return "one of " + ", ".join(f"`{item.value}`" for item in annotation)
    names = {
        str: "string",
        dt.date: "date, such as 2026-07-20",
        int: "integer",
        float: "number",
        bool: "true or false",
    }
    return names.get(annotation, "null" if annotation is types.NoneType else "any value")


def main() -> None:
    """Write the pages."""
    for name, make in MADE.items():
        path = DOCS / name
        path.write_text(refreshed(path.read_text(), make()))


MADE: Mapping[str, Callable[[], str]] = {
    "json.md": shapes,
    "cli.md": reference,
    "configuration.md": configuration,
    "python.md": python,
    "terraform.md": terraform,
}
"""The pages with a generated part, and what makes it."""


if __name__ == "__main__":
    main()

"""The list of commands in `hybrid --help`, by what they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

if TYPE_CHECKING:
    import typer

GROUPS = {
    "The cluster": ("up", "down", "status", "nodes", "doctor"),
    "Work": ("submit", "jobs", "logs", "cancel", "audit", "env"),
    "Decisions and money": ("plan", "offers", "data", "events", "cost"),
    "Simulation": ("trace", "sim", "advise"),
    "Operating": ("drain", "pause", "resume", "gc"),
    "Settings": ("config", "terraform", "version"),
}


class Grouped(TyperGroup):
    """Prints commands in groups instead of in one long list."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the groups."""
        for title, names in GROUPS.items():
            rows = [
                (name, command.get_short_help_str(limit=80))
                for name in names
                if (command := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

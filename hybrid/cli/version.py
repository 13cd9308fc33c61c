"""`hybrid version`."""

from __future__ import annotations

import json as json_text
import platform

import typer

import hybrid
from hybrid.cli.options import Json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("version")(version)


def installed(name: str) -> str | None:
    """Return the version of an installed distribution, without importing it."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of(name)
    except PackageNotFoundError:
        return None


def version(json: Json = False) -> None:
    """Print the versions of hybrid, Python and Ray."""
    versions = {
        "hybrid": hybrid.__version__,
        "python": platform.python_version(),
        "ray": installed("ray"),
    }
    if json:
        typer.echo(json_text.dumps(versions))
        return
    ray = versions["ray"] or "not installed"
    typer.echo(f"hybrid {versions['hybrid']} (Python {versions['python']}, Ray {ray})")

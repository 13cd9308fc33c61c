"""`hybrid terraform`: the provider for Terraform."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from hybrid.cli import output


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="The provider for Terraform.", no_args_is_help=True, rich_markup_mode=None
    )
    group.callback()(_group)
    group.command("install")(install)
    app.add_typer(group, name="terraform")


def _group() -> None:
    """The provider for Terraform."""


def install(
    folder: Annotated[
        Path,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Where; `terraform.d/plugins` in a root module can be committed, and then "
            "`terraform init` works for everybody who has hybrid.",
        ),
    ] = Path("~/.terraform.d/plugins"),
) -> None:
    """Put the provider where `terraform init` finds it, for every platform."""
    import hybrid
    from hybrid.terraform import install as installing

    written = installing.install(folder.expanduser())
    lines = [
        f"The provider {installing.SOURCE} {hybrid.__version__} is installed "
        f"for {len(written)} platforms:",
        *(f"  {path}" for path in written),
    ]
    if folder.expanduser() != Path(installing.USUAL).expanduser():
        lines.append("Terraform looks there when the folder is `terraform.d/plugins` of its root.")
    output.lines(lines)
    if shutil.which(installing.PROGRAM) is None:
        output.say(
            f"{installing.PROGRAM} is not on PATH, and the shims start it from there: activate "
            "hybrid's environment before you run terraform, or set HYBRID_TERRAFORM_PROVIDER."
        )

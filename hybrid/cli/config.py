"""`hybrid config`: check, show and describe `hybrid.yaml`."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode
from hybrid.cli.options import Cluster, connect
from hybrid.cli.table import Column, table

if TYPE_CHECKING:
    from hybrid.settings import Layer, Settings, SettingsError

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="Default: HYBRID_CONFIG, then ./hybrid.yaml, then the embedded default.",
        show_default=False,
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Check, show and describe hybrid.yaml.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("validate")(validate)
    group.command("show")(show)
    group.command("schema")(schema)
    group.command("env")(env)
    app.add_typer(group, name="config")


FromTerraform = Annotated[
    str,
    typer.Option(
        "--from-terraform",
        metavar="DIR",
        help="Lay the outputs of this root module over FILE; `-` reads `terraform output -json` "
        "from standard input, `none` forgets those of earlier.",
        show_default=False,
    ),
]


def load(file: Path | None, layers: Mapping[str, Layer | None] | None = None) -> Settings:
    """Return the settings of a file, or of the default.

    Raises:
        SettingsError: Something in it is wrong.
    """
    from hybrid import settings

    return settings.load(file, settings.environment(), layers=layers)


def terraform_layers(given: str, file: Path | None) -> Mapping[str, Layer | None]:
    """Return what `--from-terraform` brings, and `None` for each earlier one that it replaces.

    Raises:
        ConfigError: There is nothing there for us.
    """
    import sys

    from hybrid import settings
    from hybrid.terraform import outputs

    if not given:
        return {}
    if given == "none":
        found: Sequence[Layer] = ()
    elif given == "-":
        found = outputs.of_json(sys.stdin.read(), "standard input")
    else:
        found = outputs.of_folder(Path(given).expanduser().absolute())
    kept = settings.kept_layers(file, settings.environment())
    earlier = [name for name in kept if name.startswith(outputs.PREFIX)]
    return {**dict.fromkeys(earlier), **{layer.name: layer for layer in found}}


def validate(file: File = None, from_terraform: FromTerraform = "", json: JsonFlag = False) -> None:
    """Check a file, also with the adapters of its clouds, and say all that is wrong with it."""
    from hybrid.settings import SettingsError
    from hybrid.settings.places import EMBEDDED

    try:
        loaded = load(file, terraform_layers(from_terraform, file))
        warnings = check(loaded)
    except SettingsError as error:
        if not json:
            raise
        output.lines([json_text.dumps(_refusal(error), ensure_ascii=False)])
        raise typer.Exit(ExitCode.USAGE) from None
    checked, unchecked = _checked(loaded)
    if json:
        answer = {
            "is_valid": True,
            "source": loaded.source,
            "problems": [],
            "warnings": warnings,
            "checked": checked,
            "not_checked": unchecked,
        }
        output.lines([json_text.dumps(answer, ensure_ascii=False)])
        return
    pools = loaded.clouds.pools if loaded.clouds else ()
    hosts = words.count(len(loaded.onprem.hosts), "on-prem host")
    rentable = words.count(len(pools), "kind") + " of instance to rent"
    head = f"{loaded.source} is good"
    if loaded.source == EMBEDDED:
        head = "There is no hybrid.yaml here; `hybrid up` would use the embedded default"
    output.lines([f"{head}: cluster {loaded.name}, {hosts}, {rentable}."])
    output.lines([f"Checked: {'; '.join(checked)}."])
    if unchecked:
        output.lines([f"Not checked, only a running controller knows: {'; '.join(unchecked)}."])
    output.lines([f"Warning: {warning}." for warning in warnings])


def check(settings: Settings) -> list[str]:
    """Let the adapters check their part, without a call; return warnings.

    Raises:
        SettingsError: An adapter refuses something, or its SDK is not installed.
    """
    from hybrid.adapters.clock import SystemClock
    from hybrid.app import offline

    offered = offline.checked(settings, SystemClock())
    return [*settings.warnings(), *offline.doubts(settings, offered)]


def _checked(settings: Settings) -> tuple[list[str], list[str]]:
    """Return what was checked, and what could not be."""
    from hybrid.app.offline import NOT_ASKED

    checked = ["every key and value, and the rules between them"]
    names = ", ".join(settings.provider_names)
    if not names:
        return checked, []
    checked.append(f"the settings of {names}, by their adapters, which made no call")
    checked.append("that the SDKs are installed here")
    return checked, list(NOT_ASKED)


def show(
    context: typer.Context,
    file: File = None,
    running: Annotated[
        bool, typer.Option("--running", help="What the running cluster uses instead.")
    ] = False,
    origins: Annotated[
        bool, typer.Option("--origins", help="Where each value comes from.")
    ] = False,
    from_terraform: FromTerraform = "",
    json: JsonFlag = False,
    _cluster: Cluster = "",
) -> None:
    """Show every value, defaults filled in and secrets masked."""
    if running:
        if file is not None or origins or from_terraform:
            raise typer.BadParameter(
                "--running goes with neither a file nor --origins nor --from-terraform"
            )
        content = connect(context).read("config")
        if json:
            output.write(content)
        else:
            _print_yaml(json_text.loads(content))
        return
    from hybrid import settings

    loaded = load(file, terraform_layers(from_terraform, file))
    if origins:
        rows = [(item.path, _shown(item.value), item.origin) for item in settings.explain(loaded)]
        if json:
            named = [dict(zip(("path", "value", "origin"), row, strict=True)) for row in rows]
            output.lines([json_text.dumps(named, ensure_ascii=False)])
        else:
            output.show(table(("PATH", Column("VALUE", is_long=True), "FROM"), rows))
    elif json:
        output.lines([json_text.dumps(settings.dump(loaded), ensure_ascii=False)])
    else:
        _print_yaml(settings.dump(loaded))


def schema() -> None:
    """Print the JSON schema of hybrid.yaml, for editors."""
    from hybrid import settings

    output.lines([json_text.dumps(settings.json_schema(), indent=2, ensure_ascii=False)])


def env() -> None:
    """List the environment variables that override a file."""
    from hybrid import settings

    output.show(table(("VARIABLE", "SETS"), settings.describe_variables()))


def _refusal(error: SettingsError) -> dict[str, object]:
    from hybrid.settings.problem import path_text

    problems = [
        {
            "path": path_text(problem.path),
            "message": problem.text,
            "line": problem.line,
            "origin": problem.origin,
        }
        for problem in error.problems
    ]
    return {"is_valid": False, "source": error.source, "problems": problems, "warnings": []}


def _print_yaml(content: object) -> None:
    import yaml

    output.lines([yaml.safe_dump(content, sort_keys=False, allow_unicode=True).rstrip()])


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)

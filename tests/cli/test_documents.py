"""docs/cli.md and docs/json.md say what the program does."""

from __future__ import annotations

import pytest

from hybrid.cli.exits import ExitCode
from hybrid.cli.help import GROUPS
from tests.cli import documents

HOW = "run `python -m tests.cli.documents` and commit what it writes"


@pytest.mark.parametrize("name", documents.MADE)
def test_the_generated_part_of_a_page_is_up_to_date(name: str) -> None:
    page = (documents.DOCS / name).read_text()

    assert page == documents.refreshed(page, documents.MADE[name]()), HOW


@pytest.mark.parametrize("name", ["json.md", "cli.md"])
@pytest.mark.parametrize("code", ExitCode)
def test_a_page_says_what_each_exit_code_means(name: str, code: ExitCode) -> None:
    page = (documents.DOCS / name).read_text()

    assert f"| {code.value} | {code.meaning} |" in page


def test_every_command_is_in_a_group_of_the_help() -> None:
    from typer.main import get_command

    from hybrid.cli.app import app

    commands = set(get_command(app).commands)  # type: ignore[attr-defined]

    assert commands == {name for names in GROUPS.values() for name in names}


def test_no_commands_line_in_the_help_is_cut() -> None:
    from typer.main import get_command

    from hybrid.cli.app import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    for command in commands.values():
        line = command.get_short_help_str(limit=80)
        assert not line.endswith("...")
        assert line.count("`") % 2 == 0
        assert " ".join(command.help.split()).startswith(line)


def test_every_field_of_an_answer_is_described_on_the_page() -> None:
    page = documents.shapes()

    for _, _, model in documents.COMMANDS:
        section = page.split(f"### {model.__name__}\n")[1].split("###")[0]
        assert all(f"| `{name}` |" in section for name in model.model_fields)

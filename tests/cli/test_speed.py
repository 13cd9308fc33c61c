"""What the quick commands must not load. Ratios of time are measured by scripts/bench."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Lab

HEAVY = (
    "ray",
    "boto3",
    "botocore",
    "google",
    "baidubce",
    "fastapi",
    "sqlalchemy",
    "uvicorn",
    "pydantic",
    "yaml",
    "numpy",
    "scipy",
    "matplotlib",
)
CODE = """
import sys
from hybrid.cli.main import main
try:
    main({words!r})
except SystemExit as ended:
    sys.stderr.write(",".join(sorted(set({heavy!r}) & set(sys.modules))) + f"|{{ended.code or 0}}")
else:
    sys.stderr.write(",".join(sorted(set({heavy!r}) & set(sys.modules))) + "|0")
"""


def loaded(words: list[str], environment: dict[str, str]) -> str:
    code = CODE.format(words=words, heavy=HEAVY)
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    return ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["status", "--json"],
        ["-c", "lab", "nodes", "--json"],
        ["plan", "--json", "--cluster", "lab"],
    ],
    ids=" ".join,
)
def test_the_quick_commands_load_nothing_heavy(
    lab: Lab, environment: dict[str, str], words: list[str]
) -> None:
    assert loaded(words, environment) == "|0"


@pytest.mark.parametrize("words", [["status"], ["jobs", "--json"], ["events"]], ids=" ".join)
def test_the_other_reading_commands_load_no_server_and_no_sdk(
    lab: Lab, environment: dict[str, str], words: list[str]
) -> None:
    heavy = set(loaded(words, environment).split("|")[0].split(","))

    assert heavy <= {"pydantic"}

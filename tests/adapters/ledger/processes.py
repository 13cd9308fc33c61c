"""Other users of a ledger: programs that are started, paused or killed, and bare SQL."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

ROOT = Path(__file__).parents[3]

_PREFACE = """
import os, signal, sys
from hybrid.adapters.ledger import open_ledger, sqlite_url
from hybrid.core.errors import *
from hybrid.core.models import Caps
from tests.adapters.ledger.builders import *
"""


def start_program(code: str, *arguments: str, wrapper: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a Python program that sees this repository; `code` follows the imports.

    Args:
        code: Indented as it is in the test.
        arguments: `sys.argv[1:]`.
        wrapper: A command that starts it, such as `unshare`.
    """
    return subprocess.Popen(
        [*wrapper, sys.executable, "-c", _PREFACE + textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def run_program(code: str, *arguments: str, wrapper: Sequence[str] = ()) -> tuple[int, str, str]:
    """Run a program to its end; return its exit status, output and errors."""
    with start_program(code, *arguments, wrapper=wrapper) as process:
        out, err = process.communicate(timeout=120)
        return process.returncode, out.strip(), err


def line_from(process: subprocess.Popen[str]) -> str:
    """Return the next line that a program prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def say(process: subprocess.Popen[str], line: str) -> None:
    """Send a line to a program's input."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


@contextmanager
def bare_sql(url: str) -> Iterator[sa.Connection]:
    """Open a transaction past the ledger, as an operator with a database shell would."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        yield connection

"""Asks y/N before money is spent or work is ended."""

from __future__ import annotations

import sys

import typer

from hybrid.cli import output
from hybrid.cli.exits import ExitCode, StopError


def confirm(question: str, *, is_yes: bool) -> None:
    """Return when the answer is yes; `is_yes` answers for the user.

    Raises:
        StopError: The answer is no, or there is nobody to ask.
        Exit: Ctrl-C.
    """
    if is_yes:
        return
    if not sys.stdin.isatty():
        raise StopError(
            f"{question} There is no terminal to ask on; pass -y to say yes", ExitCode.USAGE
        )
    try:
        is_agreed = typer.confirm(question, default=False, err=True)
    except typer.Abort as error:  # Ctrl-C, or the end of the input
        output.say("")
        if isinstance(error.__context__, EOFError):
            is_agreed = False
        else:
            output.say("Interrupted: nothing was done.")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    if not is_agreed:
        raise StopError("nothing was done, as you said no")

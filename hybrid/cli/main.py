"""The command `hybrid`: runs it, and turns errors into messages and exit codes.

Imports little: the parser and everything else is loaded when it is needed.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

import hybrid
from hybrid.cli import quick
from hybrid.cli.exits import ExitCode, code_of
from hybrid.core.errors import HybridError


def main(words: list[str] | None = None) -> None:
    """Run `hybrid` and exit.

    Args:
        words: Its arguments; default: those of the process.
    """
    sys.excepthook = _on_bug
    words = sys.argv[1:] if words is None else words
    try:
        if not quick.answer(words):
            from hybrid.cli.app import run

            run(words)
    except HybridError as error:
        sys.exit(report(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # `hybrid ... | head`: nobody reads on, and that is all right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)


def report(error: HybridError) -> int:
    """Say what is wrong on stderr, and return the exit code."""
    sys.stdout.flush()
    first, *more = str(error).splitlines() or [type(error).__name__]
    sys.stderr.write("\n".join([f"Error: {first}", *(f"       {line}" for line in more)]) + "\n")
    return int(code_of(error))


def _on_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.__excepthook__(kind, error, trace)
    sys.stderr.write(
        f"Error: this is a bug in hybrid {hybrid.__version__}. "
        "Please report it with the lines above.\n"
    )


if __name__ == "__main__":
    main()

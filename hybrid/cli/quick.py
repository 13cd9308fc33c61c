"""The shortest way from the shell to the API, for programs that ask often.

`hybrid status --json` and the like need no parser and no models: without them they take a
third of the time. Whatever is not exactly known here goes the usual way.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.cli import output

COMMANDS = frozenset({"status", "nodes", "plan"})
"""Reading commands whose `--json` is one answer of the API, without parameters."""


def answer(words: Sequence[str]) -> bool:
    """Run the command if it is one of the quick ones; whether it was."""
    parsed = parse(words)
    if parsed is None:
        return False
    command, cluster = parsed
    from hybrid.client import Client

    with Client(cluster=cluster) as client:
        output.write(client.read(command))
    return True


def parse(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the command and the cluster; `None` for all that is not quick."""
    rest = list(words)
    cluster = ""
    for index, word in enumerate(rest):
        if word in ("-c", "--cluster") and index + 1 < len(rest):
            cluster = rest[index + 1]
            del rest[index : index + 2]
            break
    if len(rest) == 2 and rest[0] in COMMANDS and rest[1] == "--json" and cluster[:1] != "-":
        return rest[0], cluster
    return None

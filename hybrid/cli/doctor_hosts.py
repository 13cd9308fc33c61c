"""The hosts over SSH in `hybrid doctor`: a table of host and check, and what to do."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hybrid.cli.table import Part, table, text
from hybrid.client import discover
from hybrid.core.errors import HybridError

if TYPE_CHECKING:
    from hybrid.app.hosts import Survey
    from hybrid.settings import Settings

_FAULTS = ("fail", "warn")


def surveys(file: Path | None) -> Sequence[Survey]:
    """Look at every host over SSH; none when the configuration is broken or has none."""
    from hybrid.cli.config import load

    try:
        settings = load(file)
    except HybridError:  # another check says so
        return ()
    if all(host.is_local for host in settings.onprem.hosts):
        return ()
    from hybrid.app.hosts import Ports, survey

    record = discover.read_record(settings.state_path)
    is_up = record is not None and record.is_alive
    url = record.url if record is not None and is_up else ""
    ports = Ports(
        gcs=_gcs_port(settings),
        controller=urlsplit(url).port or 0 if url else _number(settings.controller.port),
        is_up=is_up,
    )
    # Short, since sockets' paths are: TMPDIR may be long.
    sockets = Path(tempfile.mkdtemp(prefix="hybrid-doctor-", dir="/tmp"))
    try:
        return survey(settings, ports, sockets / "s")
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def count(found: Sequence[Survey], state: str) -> int:
    """Return how many findings have that state."""
    return sum(item.state == state for survey in found for item in survey.findings)


def page(found: Sequence[Survey]) -> Iterator[Part]:
    """Yield the table of hosts and checks, and each fault with what to do."""
    if not found:
        return
    checks = [item.check for item in found[0].findings]
    yield text("")
    yield table(
        ("HOST", *(check.upper() for check in checks)),
        ((survey.host, *(item.state for item in survey.findings)) for survey in found),
    )
    for survey in found:
        for item in survey.findings:
            if item.state in _FAULTS:
                style = "bold red" if item.state == "fail" else "yellow"
                blocks = "; it cannot join like this" if item.is_blocking else ""
                yield text("")
                yield text(f"{survey.host}: {item.check}: {item.found}{blocks}", style)
                yield text(f"  To do: {item.remedy}")
    if any(item.state in _FAULTS for survey in found for item in survey.findings):
        yield text("")


def as_json(found: Sequence[Survey]) -> list[dict[str, object]]:
    """Return what `--json` prints."""
    return [
        {
            "host": survey.host,
            "address": survey.address,
            "checks": [
                {
                    "name": item.check,
                    "state": item.state,
                    "found": item.found,
                    "remedy": item.remedy,
                    "is_blocking": item.is_blocking,
                }
                for item in survey.findings
            ],
        }
        for survey in found
    ]


def _gcs_port(settings: Settings) -> int:
    from hybrid.node.folder import Folder

    fixed = _number(settings.head.port)
    return fixed or Folder(settings.state_path / "nodes" / "head").ports().get("gcs", 0)


def _number(port: int | str) -> int:
    return port if isinstance(port, int) else 0

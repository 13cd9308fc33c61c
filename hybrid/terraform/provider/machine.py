"""Clusters of this machine: where their controllers are, and the commands that start and end them.

A cluster is started by `hybrid up` and ended by `hybrid down`, as a person would; all the rest
goes over HTTP.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.client import discover
from hybrid.core.errors import HybridError

FILE_NAME = "terraform.yaml"
_POLL_S = 0.2


class CommandError(HybridError):
    """A command of hybrid failed; the text is what it said."""


class StoppedError(HybridError):
    """Terraform was asked to stop while a command ran."""


def state_dir(cluster: str) -> Path:
    """Return a cluster's state folder."""
    return discover.state_dir_of(cluster)


def running(cluster: str) -> discover.Record | None:
    """Return the record of a cluster's controller, when it lives."""
    record = discover.read_record(state_dir(cluster))
    return record if record is not None and record.is_alive else None


def is_starting(cluster: str) -> bool:
    """Return whether a process holds a cluster's state folder, be it not yet ready."""
    try:
        pid = int((state_dir(cluster) / "controller.lock").read_text())
    except (OSError, ValueError):
        return False
    return discover.is_alive(pid)


def token_of(record: discover.Record) -> str:
    """Return the API token of a cluster of this user."""
    return (record.state_dir / discover.TOKEN_NAME).read_text().strip()


def file_of(cluster: str) -> Path:
    """Return the configuration file that this provider writes for a cluster."""
    return state_dir(cluster) / FILE_NAME


def text_of(cluster: str, config: str | None) -> str:
    """Return a configuration file: the name, and what the user wrote."""
    return f"name: {cluster}\n{config or ''}"


def write(cluster: str, config: str | None) -> Path:
    """Write a cluster's configuration file."""
    path = file_of(cluster)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(text_of(cluster, config))
    path.chmod(0o600)
    return path


def config_of(record: discover.Record) -> str | None:
    """Return what a running cluster's file says beside the name; `None` when nothing."""
    try:
        text = Path(record.config_path).read_text()
    except OSError:
        return None
    return text.removeprefix(f"name: {record.cluster}\n") or None


def problems(cluster: str, config: str | None) -> Sequence[str]:
    """Return what `hybrid config validate` says against a configuration."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text_of(cluster, config))
        done = subprocess.run(
            [*_HYBRID, "config", "validate", str(path), "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        found = json.loads(done.stdout)["problems"]
    except (ValueError, KeyError):
        return [done.stderr.strip() or "hybrid config validate failed"]
    return [_sentence(problem) for problem in found]


def run(words: Sequence[str], stopping: threading.Event) -> str:
    """Run a command of hybrid to its end; return its output.

    Raises:
        CommandError: It failed.
        StoppedError: Terraform stops; the command is left to itself, what it began goes on.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [*_HYBRID, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,  # Ctrl-C in Terraform's terminal is not for it
        )
        while process.poll() is None:
            if stopping.wait(_POLL_S):
                # `up` waits only; the controller it started is a process of its own
                process.terminate()
                process.wait()
                raise StoppedError(f"interrupted in `hybrid {words[0]}`")
        out.seek(0)
        err.seek(0)
        if code := process.returncode:
            said = err.read().strip().removeprefix("Error: ") or out.read().strip()
            raise CommandError(said or f"`hybrid {words[0]}` ended with {code}")
        return out.read()


def offers(words: Sequence[str], stopping: threading.Event) -> list[dict[str, Any]]:
    """Return what `hybrid offers --json` lists."""
    return list(json.loads(run(["offers", "--json", *words], stopping))["offers"])


def _sentence(problem: dict[str, Any]) -> str:
    path, line = problem.get("path"), problem.get("line")
    place = f"{path}: " if path else ""
    # the first line of the file is ours
    return f"{place}{problem['message']}" + (f" (line {line - 1} of config)" if line else "")


_HYBRID = (sys.executable, "-m", "hybrid.cli.main")

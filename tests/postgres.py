"""A real PostgreSQL server for tests: started once, thrown away at the end.

It listens on a unix socket in a short folder of its own and on no port, so any number of test
runs can have one. It is ended by its process id, and it ends by itself when the test run dies.

    with running_server() as server:
        url = server.new_schema()
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.lacking import lacking

_SUPERUSER = "hybrid"
_WAIT_S = 60


@dataclass(frozen=True)
class PostgresServer:
    """A running server.

    Attributes:
        folder: Holds its files and its socket.
        process: The postmaster.
    """

    folder: Path
    programs: Path
    process: subprocess.Popen[bytes]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_schema(self) -> str:
        """Make an empty schema and return the SQLAlchemy URL of a database that is just that.

        Enough for most tests, and made and thrown away at once: a database is 300 files.
        """
        name = f"test_{next(self._numbers)}"
        self.psql(f"CREATE SCHEMA {name}")
        return self.url("postgres") + f"&options=-csearch_path%3D{name}"

    def new_database(self) -> str:
        """Make an empty database and return its SQLAlchemy URL."""
        name = f"test_{next(self._numbers)}"
        self.psql(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str) -> str:
        """Return the SQLAlchemy URL of a database, there or not."""
        return f"postgresql+psycopg://{_SUPERUSER}@/{database}?host={self.folder}"

    def psql(self, statement: str, *, database: str = "postgres") -> str:
        """Run one SQL statement as the superuser and return what it prints."""
        command: list[str | Path] = [
            *(self.programs / "psql", "-h", self.folder, "-U", _SUPERUSER, "-d", database),
            *("-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Start a server and end it with everything it wrote.

    Skips the test when this machine has no PostgreSQL, and fails it in CI.
    """
    programs = _programs()
    # Short: a unix socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="hpg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            account = pwd.getpwnam(_account())
            os.chown(folder, account.pw_uid, account.pw_gid)
        _make_cluster(programs, folder)
        process = _start(programs, folder)
        try:
            _wait_until_ready(programs, folder, process)
            yield PostgresServer(folder=folder, programs=programs, process=process)
        finally:
            process.send_signal(signal.SIGQUIT)  # at once; nothing here is worth keeping
            process.wait(timeout=_WAIT_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Return the folder of the newest installed server's programs."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    if not on_path:
        lacking("no PostgreSQL server here: install the package 'postgresql' (Debian, Ubuntu)")
    return Path(on_path).resolve().parent


def _account() -> str:
    """Return the user that runs the server when we are root, which PostgreSQL refuses."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _command(programs: Path, *arguments: str | Path) -> Sequence[str | Path]:
    # The kernel ends the server when the test run dies, however it dies.
    guard = ["setpriv", "--pdeathsig", "QUIT"]
    if os.geteuid() == 0:
        account = pwd.getpwnam(_account())
        guard += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    return [*guard, "--", programs / arguments[0], *arguments[1:]]


def _make_cluster(programs: Path, folder: Path) -> None:
    command = _command(
        programs,
        *("initdb", "-D", folder / "files", "-U", _SUPERUSER, "-A", "trust"),
        *("-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


def _start(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    settings = (
        "listen_addresses=",
        f"unix_socket_directories={folder}",
        # A test kills processes, never the machine.
        "fsync=off",
        "shared_buffers=16MB",
        "max_connections=60",
        "log_min_messages=fatal",
    )
    options = [part for setting in settings for part in ("-c", setting)]
    command = _command(programs, "postgres", "-D", folder / "files", *options)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd="/")


def _wait_until_ready(programs: Path, folder: Path, process: subprocess.Popen[bytes]) -> None:
    command: list[str | Path] = [programs / "pg_isready", "-q", "-h", folder, "-t", "1"]
    for _ in range(20 * _WAIT_S):
        if process.poll() is not None:
            break
        if subprocess.run(command, timeout=_WAIT_S).returncode == 0:
            return
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
    pytest.fail(f"PostgreSQL did not start: {(folder / 'log').read_text()}")

"""A state folder with a running (fake) cluster, and the command line over it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from hybrid.api.server import ApiServer, make_app, serve
from hybrid.cli.main import main
from hybrid.control.service import Service
from tests.api.conftest import Seat
from tests.api.fake_service import FakeService
from tests.running import TOKEN, write_record

ROOT = Path(__file__).parents[2]
STAND_IN = f"{sys.executable} -m tests.cli.stand_in"


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@dataclass(frozen=True)
class Lab:
    """A running cluster named `lab`."""

    seat: Seat
    server: ApiServer
    state_dir: Path

    @property
    def service(self) -> FakeService:
        return self.seat.service


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of state folders; the environment is clean."""
    for name in [name for name in os.environ if name.startswith("HYBRID_")]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("HYBRID_HOME", str(folder))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture(scope="session")
def shared() -> Iterator[tuple[Seat, ApiServer]]:
    seat = Seat()
    server = serve(make_app(cast(Service, seat), TOKEN), "127.0.0.1", 0)
    yield seat, server
    server.stop()


@pytest.fixture
def lab(home: Path, shared: tuple[Seat, ApiServer]) -> Lab:
    seat, server = shared
    seat.service = FakeService()
    write_record(home / "lab", url=server.url)
    (home / "lab" / "api_token").write_text(TOKEN)
    return Lab(seat, server, home / "lab")


@pytest.fixture
def run(home: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Return a way to run `hybrid` in this process, its output going into a pipe."""

    def run_it(*words: str) -> Result:
        capsysbinary.readouterr()
        code = 0
        try:
            main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsysbinary.readouterr()
        return Result(code, out.decode(), err.decode())

    return run_it


@pytest.fixture
def environment(home: Path, tmp_path: Path) -> dict[str, str]:
    """Return the environment for real processes: this checkout, as if it were installed."""
    metadata = tmp_path / "metadata" / "hybrid_burst-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hybrid-burst\nVersion: 0.1.0\n"
        "Requires-Dist: ray[default]==2.60.0\n"
    )
    (metadata / "entry_points.txt").write_text("[hybrid.providers]\nlocal = providers.local:make\n")
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{metadata.parent}",
        "HYBRID_CONTROLLER_COMMAND": STAND_IN,
        "TERM": "xterm-256color",
    }


@pytest.fixture
def installed(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Make this process one with the environment for real processes."""
    for name in ("PYTHONPATH", "HYBRID_CONTROLLER_COMMAND"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.syspath_prepend(tmp_path / "metadata")
    return environment


@pytest.fixture
def start(installed: dict[str, str], run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a way to run a command that starts the stand-in, told by keywords how to be."""

    def run_it(*words: str, **how: str) -> Result:
        with monkeypatch.context() as patch:
            for name, value in how.items():
                patch.setenv(name, value)
            return run(*words)

    return run_it

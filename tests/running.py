"""State folders with a running (fake) controller, as the client and the command line find them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.api.server import ApiServer, make_app, serve
from tests.api.fake_service import FakeService

TOKEN = "t0ken-for-tests"


@dataclass
class Running:
    """A fake controller that serves, and its state folder."""

    state_dir: Path
    service: FakeService
    server: ApiServer = field(init=False)

    def __post_init__(self) -> None:
        self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        token = self.state_dir / "api_token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        self.start()

    def start(self) -> None:
        """Serve, and write the record; again after `stop` this is a restart on a new port."""
        self.server = serve(make_app(self.service, TOKEN), "127.0.0.1", 0)
        write_record(self.state_dir, url=self.server.url)

    def stop(self) -> None:
        """Go away as after a clean exit."""
        self.server.stop()
        (self.state_dir / "controller.json").unlink(missing_ok=True)


def write_record(state_dir: Path, *, url: str, pid: int | None = None) -> None:
    """Write a controller's record as the controller does."""
    state_dir.mkdir(parents=True, exist_ok=True)
    fields = {
        "pid": pid or os.getpid(),
        "url": url,
        "cluster": state_dir.name,
        "config_path": str(state_dir / "hybrid.yaml"),
        "version": "0.1.0",
        "started_at_s": 1_764_492_800.0,
    }
    (state_dir / "controller.json").write_text(json.dumps(fields))


def dead_pid() -> int:
    """Return the id of a process that has ended."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child

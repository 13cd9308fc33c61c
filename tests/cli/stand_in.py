"""A stand-in for `python -m hybrid.app`: same command line, same files, a fake cluster.

What it does is told by variables: STAND_IN_DIE (exit code, after STAND_IN_SAYS on stderr),
STAND_IN_START_S and STAND_IN_CLOSE_S (how long it takes), STAND_IN_HANG (never ready),
STAND_IN_CRASH_ON_CLOSE (dies instead of closing), STAND_IN_DEAF (ignores SIGTERM),
STAND_IN_NODE (starts a node, which SIGTERM leaves and closing ends), STAND_IN_LOCKED_S (how long
it has the state folder before it writes its record).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from hybrid import settings
from hybrid.adapters.state import AlreadyRunningError, StateFolder
from hybrid.api.server import make_app, serve
from hybrid.app.layers import ConfigLayers
from hybrid.core.views import Accepted, InstancesView, StatusView
from hybrid.node import stopping
from hybrid.node.environment import TAG
from hybrid.node.folder import Folder
from tests.api.fake_service import FakeService

LIFE_S = 120.0
"""So that a test that forgets one leaks it for two minutes, not for ever."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["run"])
    parser.add_argument("--config", required=True)
    parser.add_argument("--state-dir", required=True)
    parser.add_argument("--closing", action="store_true")
    parser.add_argument("--pretty", action="store_true")
    args = parser.parse_args()
    env = os.environ
    sys.stderr.write(f"stand-in: {args}\n")
    if env.get("STAND_IN_DIE"):
        sys.stderr.write(env.get("STAND_IN_SAYS", "") + "\n")
        return int(env["STAND_IN_DIE"])
    folder = StateFolder(Path(args.state_dir))
    try:
        folder.open()
    except AlreadyRunningError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 4
    time.sleep(float(env.get("STAND_IN_LOCKED_S", "0")))
    return run(folder, args.config, is_closing=args.closing)


def start_node(state_dir: Path) -> subprocess.Popen[bytes]:
    """Start a process that looks like a node of the cluster."""
    folder = state_dir / "nodes" / "gpu-1"
    folder.mkdir(parents=True)
    orders: dict[str, object] = {
        "id": "gpu-1",
        "cluster_id": f"c-{os.getpid()}",
        "role": "host",
        "command": ["true"],
        "env": {},
        "temp_dir": f"/tmp/hybrid-test/{os.getpid()}",
        "ray_token_file": None,
        "join": None,
        "boot_delay_s": 0,
        "lease_file": None,
    }
    (folder / "node.json").write_text(json.dumps(orders))
    env = {TAG: Folder(folder).tag(), "PATH": os.environ["PATH"]}
    return subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)


class Restarted(FakeService):
    """Says when it began, as a controller does that was started again."""

    def __init__(self, *, cluster: str) -> None:
        super().__init__(cluster=cluster)
        self._began_at_s = time.time()
        self.ended: set[str] = set()

    def status(self) -> StatusView:
        view = super().status()
        cluster = view.cluster.model_copy(update={"started_at_s": self._began_at_s})
        return view.model_copy(update={"cluster": cluster})

    def instances(self, *, limit: int = 1000) -> InstancesView:
        view = super().instances(limit=limit)
        if not self.ended:
            return view
        ended = [item for item in view.instances if item.instance_id in self.ended]
        told = [item.model_copy(update={"ended_at_s": time.time()}) for item in ended]
        rest = [item for item in view.instances if item.instance_id not in self.ended]
        return view.model_copy(update={"instances": (*rest, *told)})

    def drain(self, target: str, *, deadline_s: float | None, owner: str) -> Accepted:
        self.ended.add(target)  # at once: nothing runs in a stand-in
        return super().drain(target, deadline_s=deadline_s, owner=owner)


def run(folder: StateFolder, config: str, *, is_closing: bool) -> int:
    state_dir = folder.path
    env = os.environ
    stop = threading.Event()

    def on_term(_number: int, _frame: FrameType | None) -> None:
        if not env.get("STAND_IN_DEAF"):
            stop.set()

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGINT, on_term)
    again = threading.Event()
    service = Restarted(cluster=state_dir.resolve().name)
    service.state, service.phase = "starting", "starting the head"
    loaded = settings.load(Path(config), settings.environment())
    service.settings = settings.dump(loaded)
    token = state_dir / "api_token"
    if not token.exists():
        token.touch(mode=0o600)
        token.write_text("t0ken")

    def restart() -> None:
        again.set()
        stop.set()

    layers = ConfigLayers(
        loaded,
        state_dir,
        settings.environment(),
        missing=lambda _places: "",
        is_ready=lambda: service.state == "ready",
        restart=restart,
    )
    app = make_app(service, token.read_text(), layers=layers)
    server = serve(app, "127.0.0.1", folder.remembered_port("127.0.0.1"))
    record = {
        "pid": os.getpid(),
        "url": server.url,
        "cluster": service.cluster,
        "config_path": config,
        "version": "0.1.0",
        "started_at_s": time.time(),
    }
    (state_dir / "controller.json").write_text(json.dumps(record))
    if env.get("STAND_IN_NODE") and not is_closing:
        start_node(state_dir)
    if is_closing:
        service.close(drain_s=0, owner="")
    elif not env.get("STAND_IN_HANG"):
        stop.wait(float(env.get("STAND_IN_START_S", "0")))
        service.state, service.phase = "ready", ""
    end_s = time.monotonic() + LIFE_S
    while not (stop.is_set() or service.closed.is_set()) and time.monotonic() < end_s:
        stop.wait(0.02)
    if service.closed.is_set():
        if env.get("STAND_IN_CRASH_ON_CLOSE"):
            os._exit(9)
        stop.wait(float(env.get("STAND_IN_CLOSE_S", "0.2")))
        if env.get("STAND_IN_NODE"):
            stopping.stop(state_dir / "nodes" / "gpu-1")
    server.stop()
    (state_dir / "controller.json").unlink(missing_ok=True)
    if again.is_set():
        os.execv(sys.executable, [sys.executable, "-m", "tests.cli.stand_in", *sys.argv[1:]])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Process 1 of a body: `python init.py FOLDER`. Standard library only; it runs in the body.

It makes the body's own file system and network as `body.json` says, runs the cloud's user data as
the cloud's agent does, and stands in for the little of systemd and of the power switch that user
data asks for. Its stand-ins of `systemctl`, `shutdown` and `poweroff` write lines to a pipe:

    start UNIT    run a unit file below /etc/systemd/system
    off           end everything, in order, and then this process: the machine is off

The end of its standard input means that the hypervisor is dead: then the power is cut.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
METADATA = "169.254.169.254"
ORDERS = Path("/run/init.orders")
UNITS = Path("/etc/systemd/system")
# Its own in every body; what must be seen of the machine below them is put back. All else is this
# machine's, to be read only.
OWN = ("/tmp", "/var/tmp", "/run", "/var/lib", "/var/log", "/root", str(UNITS))
STOP_LIMIT_S = 5.0
SHUTDOWN_SCRIPT_LIMIT_S = 90.0
RESTART_AFTER_S = 0.1

_STAND_INS = {
    "systemctl": """\
#!/bin/sh
for word in "$@"; do
  case $word in
    enable | start | restart) verb=$word ;;
    --now) now=yes ;;
    *.service) [ "$verb$now" = enable ] || echo "start $word" > {orders} ;;
    poweroff) echo off > {orders} ;;
  esac
done
""",
    "poweroff": "#!/bin/sh\necho off > {orders}\n",
    "shutdown": "#!/bin/sh\necho off > {orders}\n",
}


class Init:
    """What process 1 does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "body.json").read_text())
        self.units: dict[int, str] = {}
        self.due: dict[str, float] = {}
        self.is_ending = False
        self._bin = folder / "bin"
        # No HOME, as cloud-init and systemd give none.
        self._env = {"PATH": f"{self._bin}:{PATH}", "LANG": "C.UTF-8"}

    def run(self) -> None:
        """Be the machine until it is off."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPWR):
            signal.signal(number, self._press)
        self._say("on")
        self._make_files()
        self._make_network()
        threading.Thread(target=self._obey, daemon=True).start()
        threading.Thread(target=_end_with_the_hypervisor, daemon=True).start()
        self._spawn("user data", ["/bin/bash", str(self.folder / "user_data")], cwd="/")
        while not self.is_ending:
            self._reap()
            for unit in [u for u, at_s in self.due.items() if time.monotonic() >= at_s]:
                del self.due[unit]
                self._start(unit)
            time.sleep(0.05)
        self._shut_down()

    # --- the machine ------------------------------------------------------------------------

    def _make_files(self) -> None:
        _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")
        for own in OWN:
            root = self.folder / "files" / own.strip("/")
            root.mkdir(parents=True, exist_ok=True)
            if own.endswith("tmp"):
                root.chmod(0o1777)
            for kept in map(Path, self.facts["kept"]):
                if kept.is_relative_to(own):
                    place = root / kept.relative_to(own)
                    place.mkdir(parents=True, exist_ok=True)
                    _mount("--rbind", str(kept), str(place))
                    if str(kept) in self.facts["sealed"]:
                        _mount("-o", "remount,bind,ro", str(place))
        # /tmp comes last: our folder is in it, and is seen there as it was before these mounts.
        for own in reversed(OWN):
            if Path(own).is_dir():
                _mount("--rbind", str(self.folder / "files" / own.strip("/")), own)
        hosts = self.folder / "hosts"
        names = {"localhost": "127.0.0.1", self.facts["hostname"]: self.facts["address"]}
        lines = (names | self.facts["hosts"]).items()
        hosts.write_text("".join(f"{address} {name}\n" for name, address in lines))
        _mount("--bind", str(hosts), "/etc/hosts")
        _mount("-o", "remount,bind,ro", "/")
        socket.sethostname(self.facts["hostname"])
        self._bin.mkdir()
        os.mkfifo(ORDERS)
        for name, text in _STAND_INS.items():
            (self._bin / name).write_text(text.replace("{orders}", str(ORDERS)))
            (self._bin / name).chmod(0o755)

    def _make_network(self) -> None:
        while "eth0" not in {name for _, name in socket.if_nameindex()}:
            time.sleep(0.01)
        steps = (
            "link set lo up",
            f"addr add {METADATA}/32 dev lo",
            f"addr add {self.facts['address']}/24 dev eth0",
            "link set eth0 up",
            f"route add default via {self.facts['gateway']}",
        )
        subprocess.run(["ip", "-batch", "-"], input="\n".join(steps), text=True, check=True)
        self._serve(METADATA, 80, "metadata")
        if self.facts["api_port"]:
            self._serve("127.0.0.1", self.facts["api_port"], "api")

    def _serve(self, address: str, port: int, name: str) -> None:
        server = socket.create_server((address, port))
        threading.Thread(target=self._relay, args=(server, name), daemon=True).start()

    def _relay(self, server: socket.socket, name: str) -> None:
        """Pass each connection on to a socket of the hypervisor's."""
        while True:
            here, _ = server.accept()
            there = socket.socket(socket.AF_UNIX)
            try:
                there.connect(str(self.folder / name))
            except OSError:
                here.close()
                continue
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    # --- processes --------------------------------------------------------------------------

    def _obey(self) -> None:
        while True:
            for line in ORDERS.read_text().splitlines():
                self._say(f"told: {line}")
                match line.split():
                    case ["start", unit]:
                        self.due[unit] = 0.0
                    case ["off"]:
                        self.is_ending = True
                    case _:
                        self._say("that is no order")

    def _press(self, *_: object) -> None:
        self._say("the power button")
        self.is_ending = True

    def _start(self, unit: str) -> None:
        service = _unit(unit)["Service"]
        words = shlex.split(service["ExecStart"])
        self.units[self._spawn(unit, words, cwd=service.get("WorkingDirectory", "/"))] = unit

    def _spawn(self, name: str, words: list[str], *, cwd: str) -> int:
        process = subprocess.Popen(
            words, cwd=cwd, env=self._env, stdin=subprocess.DEVNULL, start_new_session=True
        )
        process.returncode = 0  # reaped by us, and not by `subprocess`
        self._say(f"{name}: process {process.pid}")
        return process.pid

    def _reap(self) -> bool:
        """Bury who died; return whether anybody lives."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            unit = self.units.pop(pid, "")
            if unit:
                self._say(f"{unit} ended with {os.waitstatus_to_exitcode(status)}")
                if _unit(unit)["Service"].get("Restart") == "always":
                    self.due[unit] = time.monotonic() + RESTART_AFTER_S

    def _shut_down(self) -> None:
        """End as a machine does whose button was pressed: its scripts first, then everybody."""
        script = self.folder / "shutdown_script"
        if script.exists():
            pid = self._spawn("shutdown script", ["/bin/bash", str(script)], cwd="/")
            end_s = time.monotonic() + SHUTDOWN_SCRIPT_LIMIT_S
            while Path(f"/proc/{pid}").exists() and time.monotonic() < end_s:
                self._reap()
                time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGTERM)
        end_s = time.monotonic() + STOP_LIMIT_S
        while self._reap() and time.monotonic() < end_s:
            time.sleep(0.05)
        self._say("off")

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{time.time():.1f} init: {text}\n")
        sys.stderr.flush()


def _unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as documented
    parser.read(UNITS / name)
    return parser


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(65_536):
            sink.sendall(content)
        sink.shutdown(socket.SHUT_WR)


def _end_with_the_hypervisor() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    Init(Path(sys.argv[1])).run()

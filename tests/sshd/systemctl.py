"""Stands in for systemctl on a machine whose units are in a folder: enable, restart, disable, boot.

systemctl.py UNITS VERB ...
"""

from __future__ import annotations

import configparser
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

PLACE = Path("/etc/systemd/system")


def main(units: Path, verb: str, names: list[str]) -> int:
    if PLACE.stat().st_ino != units.stat().st_ino:
        return 1  # not on its machine
    enabled = units / ".enabled"
    enabled.touch()
    now = enabled.read_text().split()
    if verb == "boot":
        for name in now:
            start(units, name)
    elif verb == "enable":
        enabled.write_text("\n".join([*now, *names]))
    elif verb == "restart":
        for name in names:
            stop(units, name)
            start(units, name)
    elif verb == "disable":
        assert names[0] == "--now"
        enabled.write_text("\n".join(name for name in now if name not in names))
        for name in names[1:]:
            stop(units, name)
    return 0


def start(units: Path, name: str) -> None:
    text = (units / name).read_text()
    service = configparser.RawConfigParser()
    service.read_string(text)
    words = [_expanded(word) for word in shlex.split(service["Service"]["ExecStart"])]
    settings = shlex.split(service["Service"]["Environment"])
    process = subprocess.Popen(
        words,
        env={name: value for name, _, value in (_expanded(s).partition("=") for s in settings)},
        cwd=service["Service"]["WorkingDirectory"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    (units / f".{name}.pid").write_text(str(process.pid))


def stop(units: Path, name: str) -> None:
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((units / f".{name}.pid").read_text()), signal.SIGTERM)


def _expanded(word: str) -> str:
    return word.replace("%%", "%").replace("$$", "$")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))

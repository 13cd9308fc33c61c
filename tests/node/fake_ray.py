#!/usr/bin/env python3
"""Stands in for `ray start`: leaves daemons behind as Ray does, in a tenth of a second.

FAKE_RAY says how it behaves: `ok`, `fail`, `hang`, `no_raylet`, `brief` (the raylet ends after
a moment), `stubborn` (it ignores SIGTERM). What it was given is written to `fake.json` in the
folder of --temp-dir.

It stands in for `ray drain-node` too: FAKE_DRAIN says what the calls do, the last word again and
again (`fail,hang,ok`), and each is a line of the file FAKE_DRAIN_CALLS. And for an interpreter
that is asked with `-c` for its version and Ray's.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def option(name: str) -> str:
    prefix = f"--{name}="
    return next((w.removeprefix(prefix) for w in sys.argv if w.startswith(prefix)), "")


def daemon(name: str, live: Callable[[int], None]) -> None:
    """Run `live` in a process whose parent ends at once, as Ray's daemons have it."""
    begun, begin = os.pipe()
    if os.fork() == 0:
        os.close(begun)
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
        live(begin)
        os._exit(0)
    os.close(begin)
    os.read(begun, 1)


def raylet(begin: int) -> None:
    mode = os.environ.get("FAKE_RAY", "ok")
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = listen(option("node-manager-port"))  # noqa: F841  # listens while it is held
    if os.fork() == 0:  # a worker, in a process group of its own
        os.setpgid(0, 0)
        os.closerange(3, 50)
        if os.fork() == 0:  # a user's program that hides: no environment, session of its own
            os.setsid()
            os.execve("/bin/sleep", ["sleep", "1000"], {})
        signal.pause()
    os.close(begin)
    if mode == "brief":
        time.sleep(0.5)
        os._exit(0)
    while True:
        signal.pause()


def gcs_server(begin: int) -> None:
    server = listen(option("port"))  # noqa: F841  # listens while it is held
    os.close(begin)
    while True:
        signal.pause()


def listen(port: str) -> socket.socket | None:
    if not port:
        return None
    server = socket.create_server(("127.0.0.1", int(port)))
    os.set_inheritable(server.fileno(), False)
    return server


def drain_node() -> int:
    calls = Path(os.environ["FAKE_DRAIN_CALLS"])
    modes = os.environ["FAKE_DRAIN"].split(",")
    number = len(calls.read_text().splitlines()) if calls.exists() else 0
    token = os.environ.get("RAY_AUTH_TOKEN", "")
    with calls.open("a") as file:
        file.write(json.dumps({"argv": sys.argv[1:], "token": token}) + "\n")
    mode = modes[min(number, len(modes) - 1)]
    if mode == "hang":
        time.sleep(1000)
    if mode == "fail":
        say("The drain request is not accepted: no such node")
        return 1
    return 0


def main() -> int:
    if sys.argv[1] == "-c":
        say(json.dumps({"python": "3.11.0", "ray": "2.60.0"}))
        return 0
    if sys.argv[1] == "drain-node":
        return drain_node()
    mode = os.environ.get("FAKE_RAY", "ok")
    if mode == "hang":
        say("waiting for the head")
        time.sleep(1000)
    if mode == "fail":
        say("\x1b[31mVersion mismatch: the cluster runs Ray 0.1\x1b[0m")
        return 1
    if mode == "no_raylet":
        say("Ray runtime started, or so it seems")
        return 0
    if folder := option("temp-dir"):
        content = json.dumps({"argv": sys.argv, "env": dict(os.environ)})
        with contextlib.suppress(OSError):  # some tests leave no room on the disk
            Path(folder, "fake.json").write_text(content)
    if "--head" in sys.argv:
        daemon("gcs_server", gcs_server)
    daemon("raylet", raylet)
    return 0


if __name__ == "__main__":
    sys.exit(main())

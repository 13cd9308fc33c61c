"""Run one emulator alone: `python -m tests.emulators aws --port 4999`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from tests.emulators import EMULATORS, start


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.emulators", description="Run a cloud's emulator on 127.0.0.1."
    )
    parser.add_argument("name", choices=sorted(EMULATORS))
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes any free port")
    asked = parser.parse_args(words)

    ending = (signal.SIGINT, signal.SIGTERM)
    # Blocked before any thread starts, so that only `sigwait` below takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        emulator = start(asked.name, asked.port)
    except (ImportError, OSError) as err:
        print(f"the {asked.name} emulator cannot start: {err}", file=sys.stderr)
        return 1
    try:
        print(f"{asked.name}: {emulator.url}\n\n{emulator.usage}\n\nCtrl-C ends it.", flush=True)
        signal.sigwait(ending)
    finally:
        emulator.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Callers of a service: a second process that sends requests at a rate, whatever comes back.

    python callers.py URL RATE_FILE RESULTS_FILE

Reads requests per second from RATE_FILE again and again; 0 or less ends it. Writes one line of
JSON for each answer: when, how long it took, and what came.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

_TIMEOUT_S = 120.0


def main() -> None:
    url, rate_file, results_file = sys.argv[1:]
    lock = threading.Lock()
    callers: list[threading.Thread] = []
    with Path(results_file).open("a", buffering=1) as results:

        def call() -> None:
            started_s = time.time()
            try:
                with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
                    said, status = response.read().decode(), response.status
            except urllib.error.HTTPError as error:
                said, status = str(error), error.code
            except OSError as error:
                said, status = repr(error), 0
            row = {"at_s": started_s, "took_s": time.time() - started_s}
            with lock:
                results.write(json.dumps({**row, "status": status, "said": said}) + "\n")

        while (rate := float(Path(rate_file).read_text() or "1")) > 0:
            caller = threading.Thread(target=call, daemon=True)
            caller.start()
            callers.append(caller)
            time.sleep(1 / rate)
        for caller in callers:
            caller.join()


if __name__ == "__main__":
    main()

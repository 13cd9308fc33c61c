"""The wrapper around a job's command: `python -m hybrid.job`, started by Ray as the driver."""

from __future__ import annotations

import sys

from hybrid.job.wrapper import main

if __name__ == "__main__":
    sys.exit(main())

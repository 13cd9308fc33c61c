"""The client's clock. It may not import `hybrid.adapters`: it stands alone."""

from __future__ import annotations

from time import monotonic as monotonic_s  # noqa: TID251 - see above
from time import sleep  # noqa: TID251 - see above
from time import time as now_s  # noqa: TID251 - see above

__all__ = ["monotonic_s", "now_s", "sleep"]

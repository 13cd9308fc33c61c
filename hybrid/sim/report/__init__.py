"""What simulated runs came to, as a page or a picture for people who do not know the code."""

from __future__ import annotations

from hybrid.sim.report.files import write_png, write_report

__all__ = ["write_png", "write_report"]

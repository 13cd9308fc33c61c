"""Autoscalers that teams run today, rebuilt after their documentation, to be compared with.

All share one dispatcher and see the same snapshots as the product's policy. None of them ever
stops a job: none of the originals does.
"""

from __future__ import annotations

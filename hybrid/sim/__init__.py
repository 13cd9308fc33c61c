"""The simulator: the policy that runs in production, on a virtual clock and real traces."""

from __future__ import annotations

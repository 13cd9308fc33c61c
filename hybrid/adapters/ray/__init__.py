"""Ray: its state, the drain, and its jobs. Only this package knows how Ray is spoken to."""

from __future__ import annotations

"""The provider `hybrid-burst/hybrid`: clusters, their clouds and their burst policy."""

from __future__ import annotations

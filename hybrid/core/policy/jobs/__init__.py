"""Reservoir: which jobs start, make room, move and come home, and what is rented for them. Pure."""

from __future__ import annotations

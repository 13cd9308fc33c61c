"""Importers: one module for each public format, from its file to a trace of ours."""

from __future__ import annotations

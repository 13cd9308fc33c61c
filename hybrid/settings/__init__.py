"""The configuration of a cluster: `hybrid.yaml`, its layers, then `HYBRID_*` variables.

Nothing else in the program reads the environment.
"""

from __future__ import annotations

from hybrid.settings.layers import Layer
from hybrid.settings.loading import kept_layers, known_providers, load
from hybrid.settings.model import Settings
from hybrid.settings.places import home, packaged, traces
from hybrid.settings.problem import Problem, SettingsError
from hybrid.settings.schema import json_schema
from hybrid.settings.showing import Explained, dump, explain
from hybrid.settings.variables import describe_variables, environment

__all__ = [
    "Explained",
    "Layer",
    "Problem",
    "Settings",
    "SettingsError",
    "describe_variables",
    "dump",
    "environment",
    "explain",
    "home",
    "json_schema",
    "kept_layers",
    "known_providers",
    "load",
    "packaged",
    "traces",
]

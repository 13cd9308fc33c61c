"""The simulator of inference services: requests, replicas at home, loans, rented replicas."""

from __future__ import annotations

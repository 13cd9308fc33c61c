"""The outside things that are not clouds: Ray, the ledger, on-prem hosts, time."""

from __future__ import annotations

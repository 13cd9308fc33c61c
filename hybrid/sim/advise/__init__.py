"""What to own and what to rent: arithmetic over prices and a demand, and simulated runs."""

from __future__ import annotations

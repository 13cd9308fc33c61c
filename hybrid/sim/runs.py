"""Runs of one trace on one site under several policies, as one document."""

from __future__ import annotations

from hybrid.core.models import Model
from hybrid.core.views import API_VERSION
from hybrid.sim.params import SimParams
from hybrid.sim.results import SimResult


class SimRunsView(Model):
    """What each policy came to, on the same jobs, boots and prices.

    Attributes:
        params: The simulated site and cloud.
        results: In the order in which the policies were named.
    """

    api_version: int = API_VERSION
    params: SimParams
    results: tuple[SimResult, ...]

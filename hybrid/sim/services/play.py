"""Plays a trace against somebody who decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from hybrid.sim.services.outcome import ServiceOutcome, outcome
from hybrid.sim.services.params import ServiceSimParams
from hybrid.sim.services.world import Orders, Seen, World

OnPart = Callable[[float], None]
"""Is told how much of the trace has been played, from 0 to 1."""

_TICKS_PER_REPORT = 2_000


class Scaler(Protocol):
    """Somebody who decides how many replicas there are."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Its tuning."""

    def decide(self, seen: Seen) -> Orders:
        """Return what shall change, from what was seen so far."""


def play(
    counts: Sequence[int],
    scaler: Scaler,
    params: ServiceSimParams,
    *,
    on_part: OnPart | None = None,
    on_orders: Callable[[Seen, Orders], None] | None = None,
) -> ServiceOutcome:
    """Return what it came to.

    Args:
        counts: Requests that arrive in each tick.
        scaler: Who decides; has seen nothing yet.
        params: The service and its prices.
        on_part: Is told how far it is.
        on_orders: Is told every tick and what was ordered after it.
    """
    world = World(params)
    for tick, count in enumerate(counts):
        seen = world.tick(count)
        orders = scaler.decide(seen)
        if orders.loans or orders.rents:
            world.obey(orders)
        if on_orders is not None:
            on_orders(seen, orders)
        if on_part is not None and tick % _TICKS_PER_REPORT == 0:
            on_part(tick / len(counts))
    world.close()
    return outcome(scaler.name, world, params, scaler.settings)

"""What `hybrid up` is about to do, and what it may cost at worst, before anything happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.cli import words
from hybrid.cli.prices import price, price_of
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.app.offline import PoolOffer
    from hybrid.cli.table import Part
    from hybrid.core.models import Caps
    from hybrid.core.offline import PoolView
    from hybrid.settings import Settings

_DAY_H = 24.0


def plan_page(settings: Settings, offered: Sequence[PoolOffer]) -> list[Part]:
    """Return the page to be confirmed; `offered` is what became of each pool."""
    page: list[Part] = [
        text(f"Cluster {settings.name}, from {settings.source}", "bold"),
        text(f"State folder: {settings.state_path}"),
        text(""),
        _machines(settings),
        text(""),
    ]
    if not may_rent(settings):
        return [*page, text("Nothing can be rented: no money can be spent."), *_warnings(settings)]
    views = [item.view for item in offered]
    return [*page, *_rentable(settings, views), *_warnings(settings)]


def may_rent(settings: Settings) -> bool:
    """Return whether the settings allow to rent anything at all."""
    if settings.clouds is None:
        return False
    pools = [pool for pool in settings.clouds.pools if pool.max_nodes != 0]
    caps = settings.caps
    zero = (caps.node_count, caps.usd_per_hour, caps.usd_per_day, caps.usd_per_month)
    return bool(pools) and 0 not in zero


def worst_usd_per_hour(settings: Settings, pools: Sequence[PoolView]) -> float | None:
    """Return an upper bound on the price of all that may be rented at a time.

    `None` when no cap and no price bounds it.
    """
    caps = settings.caps
    bounds = [] if caps.usd_per_hour is None else [caps.usd_per_hour]
    prices = [pool.at_most_usd_per_hour for pool in pools if pool.at_most_usd_per_hour is not None]
    if len(prices) == len(pools):
        if caps.node_count is not None:
            bounds.append(caps.node_count * max(prices, default=0.0))
        sums = [
            pool.max_count * price
            for pool, price in zip(pools, prices, strict=True)
            if pool.max_count is not None
        ]
        if len(sums) == len(pools):
            bounds.append(sum(sums))
    return min(bounds, default=None)


def worst_line(settings: Settings, pools: Sequence[PoolView]) -> str:
    """Return the worst case in words."""
    hour = worst_usd_per_hour(settings, pools)
    day_bounds = [hour * _DAY_H] if hour is not None else []
    if settings.caps.usd_per_day is not None:
        day_bounds.append(settings.caps.usd_per_day)
    day = min(day_bounds, default=None)
    lease = words.duration(settings.lease.length_s)
    return (
        f"At worst: {words.rate(hour)}, {words.money(day)} a day. If this controller dies for "
        f"good, rented nodes end themselves within {lease}."
    )


def _machines(settings: Settings) -> Part:
    head = settings.head
    rows = [("head", head.address, _gpus("", head.gpus), str(head.cpus), f"Ray port {head.port}")]
    rows += [
        (
            host.name,
            host.address,
            str(host.accelerators) if host.accelerators else words.NONE,
            str(host.cpus) if host.cpus is not None else words.UNKNOWN,
            "",
        )
        for host in settings.onprem.hosts
    ]
    return table(("MACHINE", "WHERE", "GPUS", Column("CPUS", is_number=True), ""), rows)


def _rentable(settings: Settings, pools: Sequence[PoolView]) -> list[Part]:
    clouds = settings.clouds
    if clouds is None:
        return []
    order = "the cheapest first" if clouds.kind == "any_of" else "in this order"
    rows = [
        (
            pool.infra,
            view.instance_type or words.UNKNOWN,
            view.gpus or words.NONE,
            "spot" if pool.use_spot else "on demand",
            price(view),
            price_of(view),
            str(pool.max_nodes) if pool.max_nodes is not None else "no limit",
        )
        for pool, view in zip(clouds.pools, pools, strict=True)
    ]
    columns = (
        "MAY BE RENTED",
        "TYPE",
        "GPUS",
        "MARKET",
        Column("PRICE", is_number=True),
        "PRICE OF",
        Column("AT MOST", is_number=True),
    )
    wait = words.duration(settings.burst.queue.max_wait_s)
    return [
        text(f"When work waits longer than {wait}, {order}:"),
        table(columns, rows),
        *(text(f"No price for {p.pool}: {p.reason.message}.") for p in pools if p.reason),
        text(""),
        text(f"Hard caps: {_caps(settings.caps)}"),
        text(worst_line(settings, pools), "bold"),
    ]


def _caps(caps: Caps) -> str:
    said: Sequence[tuple[object, str]] = (
        (caps.node_count, f"{caps.node_count} nodes at a time"),
        (caps.gpu_count, f"{caps.gpu_count} GPUs at a time"),
        (caps.usd_per_hour, f"{words.rate(caps.usd_per_hour)}"),
        (caps.usd_per_day, f"{words.money(caps.usd_per_day)} a day"),
        (caps.usd_per_month, f"{words.money(caps.usd_per_month)} a month"),
    )
    return ", ".join(phrase for value, phrase in said if value is not None) or "none"


def _gpus(accelerator: str, count: int) -> str:
    return f"{accelerator or 'GPU'}:{count}" if count else words.NONE


def _warnings(settings: Settings) -> list[Part]:
    return [text(f"Warning: {warning}.", "yellow") for warning in settings.warnings()]

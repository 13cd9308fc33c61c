"""What is allowed, but probably not meant."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from hybrid.core.quantity import duration_text
from hybrid.settings.machines import Pool
from hybrid.settings.model import Settings


def advise(settings: Settings) -> Iterator[str]:
    """Yield one sentence for each setting that will not do what its author expects."""
    if not settings.onprem.hosts and settings.clouds is None:
        yield "there are no onprem.hosts and no clouds: only the head can run work"
    yield from unready_clouds(settings)
    yield from _about_money(settings)
    lease = settings.lease
    if settings.clouds and lease.renew_s > lease.length_s / 2:
        yield (
            f"lease.renew ({duration_text(lease.renew_s)}) is more than half of lease.length "
            f"({duration_text(lease.length_s)}): one failed renewal ends rented nodes"
        )
    host = settings.controller.host
    if not ipaddress.ip_address(host).is_loopback:
        yield (
            f"controller.host is {host}: the API can be reached from other machines, and what it "
            "says is not encrypted"
        )


def unready_clouds(settings: Settings) -> Iterator[str]:
    """Yield one sentence for each cloud whose machines could not join: they would only cost.

    An account that names an emulator on this machine is let through: nothing is rented there.
    """
    if settings.head.node_ip:
        return
    names = dict.fromkeys(p.provider for p in (settings.clouds.pools if settings.clouds else ()))
    for name in names:
        account = settings.providers.get(name, {})
        if name != "local" and not _is_emulated(account):
            yield (
                f"machines of {name} cannot join, since head.address is local: they would cost "
                f"money and be returned unused, so `hybrid up` refuses. Set head.address to the IP "
                f"address at which they reach this machine (a private one, over a VPN if need be); "
                f"or try it with infra: local, or with an emulator (docs/fidelity.md)"
            )


def _is_emulated(account: Mapping[str, object]) -> bool:
    """Return whether all servers that an account names are on this machine."""
    given = [value for key, value in account.items() if "endpoint" in key]
    urls = [url for v in given for url in (v.values() if isinstance(v, Mapping) else [v])]
    return bool(urls) and all(_is_here(str(url)) for url in urls)


def _is_here(url: str) -> bool:
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _about_money(settings: Settings) -> Iterator[str]:
    if settings.clouds is None:
        return
    caps = settings.caps
    if all(cap is None for cap in (caps.usd_per_hour, caps.usd_per_day, caps.usd_per_month)):
        yield (
            "budget has no cap in dollars: nodes and gpus limit how much is rented at a time, "
            "not what it costs"
        )
    for place, pool in enumerate(settings.clouds.pools):
        reason = _why_never(settings, pool)
        if reason:
            yield f"clouds.{settings.clouds.kind}[{place}] is never rented: {reason}"


def _why_never(settings: Settings, pool: Pool) -> str:
    caps, own = settings.caps, settings.prices.of(pool)
    if pool.max_nodes == 0:
        return "its max_nodes is 0"
    for key, cap, need in (
        ("nodes", caps.node_count, 1),
        ("gpus", caps.gpu_count, pool.gpu_count),
        ("usd_per_hour", caps.usd_per_hour, pool.usd_per_hour or (own.usd_per_hour if own else 0)),
        ("usd_per_day", caps.usd_per_day, 0),
        ("usd_per_month", caps.usd_per_month, 0),
    ):
        if cap is not None and (cap < need or (cap == 0 and key.startswith("usd"))):
            return f"budget.{key} is {cap:g}" + (
                f" and one instance needs {need:g}" if need else ""
            )
    return ""

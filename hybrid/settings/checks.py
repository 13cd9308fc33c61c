"""Rules between values that are valid one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from hybrid.core.quantity import duration_text
from hybrid.settings.machines import RAY_NODE_PORTS, RAY_WORKER_PORTS
from hybrid.settings.model import Settings
from hybrid.settings.problem import Path, path_text
from hybrid.settings.rawchecks import Found
from hybrid.settings.servicechecks import services_are_whole


def broken_rules(settings: Settings, *, unsound: Collection[Path]) -> Iterator[Found]:
    """Yield every broken rule.

    Args:
        settings: Valid value by value; unsound values stand at their defaults.
        unsound: What was refused; a rule that needs any of it says nothing.
    """
    for needs, rule in _RULES:
        if not any(_overlap(need, path) for need in needs for path in unsound):
            yield from rule(settings)


def _overlap(need: Path, path: Path) -> bool:
    shorter = min(len(need), len(path))
    return need[:shorter] == path[:shorter]


def _ports_do_not_clash(settings: Settings) -> Iterator[Found]:
    head, workers = settings.head, settings.ray.worker_ports
    ports = (head.port, head.dashboard_port, head.client_port, settings.controller.port)
    seen: dict[int, str] = {}
    for path, port in zip(_PORTS, ports, strict=True):
        if not isinstance(port, int):
            continue
        for taken in {RAY_WORKER_PORTS, workers or RAY_WORKER_PORTS}:
            if port in taken:
                text = f"{port} lies in {taken}, which Ray's workers use"
                yield path, f"{text}; write one outside, or auto"
        if port in seen:
            yield path, f"{port} is also {seen[port]}; write another, or auto"
        seen[port] = path_text(path)


def _workers_have_ports(settings: Settings) -> Iterator[Found]:
    workers = settings.ray.worker_ports
    if workers is None:
        return
    if workers.high - workers.low < 99:
        text = f"{workers} is too narrow, since every worker of a node needs a port"
        yield ("ray", "worker_ports"), f"{text}; write a range of 100 or more"
    elif workers.low <= RAY_NODE_PORTS.high and workers.high >= RAY_NODE_PORTS.low:
        # Ray 2.60 does not start when one of its parts has a port of the workers' range.
        text = f"{workers} overlaps {RAY_NODE_PORTS}, where the other parts of every node listen"
        yield ("ray", "worker_ports"), f"{text}; write another range, such as 30000..31999"


def _leases_last(settings: Settings) -> Iterator[Found]:
    lease, tick_s = settings.lease, settings.controller.tick_s
    length = duration_text(lease.length_s)
    if lease.renew_s >= lease.length_s:
        yield (
            ("lease", "renew"),
            f"a lease of {length} renewed every {duration_text(lease.renew_s)} runs out in "
            "between; write less than lease.length",
        )
    elif lease.renew_s + tick_s > lease.length_s:
        yield (
            ("controller", "tick"),
            f"a tick of {duration_text(tick_s)} can come too late to renew a lease of {length}; "
            "write a shorter tick or a longer lease",
        )


def _backoff_grows(settings: Settings) -> Iterator[Found]:
    backoff = settings.backoff
    if backoff.longest_s < backoff.first_s:
        text = f"it is less than the first delay, {duration_text(backoff.first_s)}"
        yield ("backoff", "longest"), f"{text}; write more"


def _keepalives_do_not_overlap(settings: Settings) -> Iterator[Found]:
    health = settings.ray.health
    if health.keepalive_timeout_s > health.keepalive_time_s:
        text = f"it is longer than keepalive_time, {duration_text(health.keepalive_time_s)}"
        yield ("ray", "health", "keepalive_timeout"), f"{text}; write less"


def _hosts_over_ssh_reach_the_head(settings: Settings) -> Iterator[Found]:
    for place, host in enumerate(settings.onprem.hosts):
        if host.is_local and host.accelerators == "auto":
            yield (
                ("onprem", "hosts", place, "accelerators"),
                "a node of this machine has the GPUs that you say; write for example GPU:4",
            )
        if not host.is_local and not settings.head.node_ip:
            yield (
                ("onprem", "hosts", place, "address"),
                f"{host.address} could not reach the head, since head.address is local; set "
                "head.address to the IP address at which the hosts reach this machine, for "
                "example 10.0.0.5",
            )


def _gpus_are_shared_one_way(settings: Settings) -> Iterator[Found]:
    for place, host in enumerate(settings.onprem.hosts):
        ways = [way for way in ("mps", "mig") if getattr(host, way) is not None]
        for way in ways:
            where = ("onprem", "hosts", place, way)
            if host.is_local:
                yield (
                    where,
                    f"a node of this machine has GPUs in number only; {way} is for hosts over SSH",
                )
            elif not host.accelerators:
                yield (
                    where,
                    "the host has no accelerators that could be shared; write accelerators: auto",
                )
        if len(ways) > 1:
            yield (
                ("onprem", "hosts", place, "mig"),
                "mps and mig are two ways to share a GPU; write one of them",
            )


def _hosts_are_different_machines(settings: Settings) -> Iterator[Found]:
    seen: dict[str, int] = {}
    for place, host in enumerate(settings.onprem.hosts):
        if not host.is_local and (first := seen.setdefault(host.address, place)) != place:
            yield (
                ("onprem", "hosts", place, "address"),
                f"{host.address} is also the address of hosts[{first}], whose GPUs would be "
                "counted twice; correct one of them, or remove one",
            )


def _currencies_have_rates(settings: Settings) -> Iterator[Found]:
    prices = settings.prices
    for place, override in enumerate(prices.overrides):
        if prices.usd(override) is None:
            code = override.currency
            yield (
                ("prices", "overrides", place, "currency"),
                f"there is no rate for {code}; write under prices.rates how many {code} a US "
                f"dollar costs, for example {{{code}: 7.1}}",
            )


def _overrides_differ(settings: Settings) -> Iterator[Found]:
    seen: dict[tuple[str, str, bool], int] = {}
    for place, override in enumerate(settings.prices.overrides):
        key = (override.infra, override.instance_type, override.use_spot)
        if (first := seen.setdefault(key, place)) != place:
            text = f"it has the same infra, instance_type and use_spot as overrides[{first}]"
            yield ("prices", "overrides", place), f"{text}; remove one of them"


def _rates_agree(settings: Settings) -> Iterator[Found]:
    for name, account in settings.providers.items():
        exchange = account.get("exchange")
        for code, rate in settings.prices.rates.items():
            other = exchange.get(f"{code.lower()}_per_usd") if isinstance(exchange, dict) else None
            if isinstance(other, int | float) and other != rate:
                text = f"a US dollar costs {other:g} {code} here and {rate:g} under prices.rates"
                place = ("providers", name, "exchange", f"{code.lower()}_per_usd")
                yield place, f"{text}; write the same in both"


_PORTS: tuple[Path, ...] = (
    ("head", "port"),
    ("head", "dashboard_port"),
    ("head", "client_port"),
    ("controller", "port"),
)
_RULES: tuple[tuple[tuple[Path, ...], Callable[[Settings], Iterator[Found]]], ...] = (
    ((*_PORTS, ("ray", "worker_ports")), _ports_do_not_clash),
    ((("ray", "worker_ports"),), _workers_have_ports),
    ((("lease",), ("controller", "tick")), _leases_last),
    ((("backoff",),), _backoff_grows),
    ((("ray", "health"),), _keepalives_do_not_overlap),
    ((("onprem",), ("head", "address")), _hosts_over_ssh_reach_the_head),
    ((("onprem",),), _hosts_are_different_machines),
    ((("onprem",),), _gpus_are_shared_one_way),
    ((("prices",),), _currencies_have_rates),
    ((("prices",),), _overrides_differ),
    ((("prices",), ("providers",)), _rates_agree),
    ((("services",),), services_are_whole),
)

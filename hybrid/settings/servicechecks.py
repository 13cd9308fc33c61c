"""Rules between the keys of services."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.settings.model import Settings
from hybrid.settings.rawchecks import Found
from hybrid.settings.services import Service


def services_are_whole(settings: Settings) -> Iterator[Found]:
    """Yield every broken rule of the services."""
    seen: dict[str, int] = {}
    for place, service in enumerate(settings.services):
        first = seen.setdefault(service.name, place)
        if first != place:
            text = f"{service.name!r} is also the name of services[{first}]; give each its own"
            yield ("services", place, "name"), text
        for key, text in (*_source(service), *_replica(service)):
            yield ("services", place, key), text


def _source(service: Service) -> Iterator[tuple[str, str]]:
    if service.source == "prometheus":
        for key in ("url", "query"):
            if getattr(service, key) is None:
                yield key, "it is missing, and source: prometheus needs it; add it"
        if service.measure == "processing":
            yield "measure", "it says what of Ray Serve is measured; remove it, or the source"
    else:
        for key in ("url", "query", "token_env", "basic_env"):
            if getattr(service, key) is not None:
                yield key, "only source: prometheus uses it; add that, or remove this"
    if service.token_env is not None and service.basic_env is not None:
        yield "basic_env", "there is a token too; keep token_env or basic_env"


def _replica(service: Service) -> Iterator[tuple[str, str]]:
    if service.measure == "processing" and service.deployment is None:
        yield "deployment", "it is missing, and measure: processing needs it; add it"
    if not service.shape:
        yield "gpus", "a replica of no GPU and no CPU needs no node; write what it takes"
    if service.borrow and not service.gpus:
        yield "borrow", "batch jobs lend GPUs, and a replica takes none; remove it, or write gpus"
    if service.borrow > service.max_replicas:
        yield (
            "borrow",
            f"there are {service.max_replicas} replicas at most; write no more than that",
        )

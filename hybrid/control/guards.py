"""Checks that refuse a start which could lose machines or money. Pure reads of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hybrid.core.models import Instance
from hybrid.core.ports import Ledger

# More lines than this help nobody on a terminal; `hybrid nodes` has them all.
_SHOWN = 20


def missing_places(ledger: Ledger, places: Mapping[str, Collection[str]]) -> str:
    """Return why the start must be refused, or `""`.

    A provider or a region that is no longer configured is not listed, so its machines could
    neither be used nor ended nor proved gone, and they would cost money behind our back.

    Args:
        ledger: Where live instances are.
        places: Regions of the configuration in force by provider; `""` is the only region of
            a provider that has none.
    """
    stranded: dict[str, list[Instance]] = {}
    for instance in ledger.live_instances():
        provider, region = instance.offer.provider, instance.offer.region
        if provider not in places:
            stranded.setdefault(f"provider {provider}", []).append(instance)
        elif region not in places[provider]:
            stranded.setdefault(f"pool in {provider}/{region}", []).append(instance)
    if not stranded:
        return ""
    lost = ", ".join(sorted(stranded))
    rows = [instance for rows in stranded.values() for instance in rows]
    return (
        f"the configuration has no {lost} any more, but {_count(rows)} still rented there: "
        f"{_list(rows)}. Put the entries back under 'clouds', run `hybrid down` (or drain them "
        f"and wait), then take them out"
    )


def _count(instances: Collection[Instance]) -> str:
    return "1 instance is" if len(instances) == 1 else f"{len(instances)} instances are"


def _list(instances: Iterable[Instance]) -> str:
    words = [
        f"{i.instance_id} ({i.offer.provider} {i.provider_id or 'id unknown'}, {i.state.value})"
        for i in instances
    ]
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")

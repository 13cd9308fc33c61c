"""Checks that refuse a start which could lose machines or money. Pure reads of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hybrid.core.models import Instance
from hybrid.core.ports import Ledger

# More lines than this help nobody on a terminal; `hybrid instances` has them all.
_SHOWN = 20


def missing_providers(ledger: Ledger, names: Collection[str]) -> str:
    """Return why the start must be refused, or `""`.

    A provider that is no longer configured cannot be listed, so its machines could neither be
    used nor ended nor proved gone, and they would cost money behind our back.

    Args:
        ledger: Where live instances are.
        names: Providers of the configuration in force.
    """
    stranded = [i for i in ledger.live_instances() if i.offer.provider not in names]
    if not stranded:
        return ""
    lost = ", ".join(sorted({i.offer.provider for i in stranded}))
    return (
        f"the configuration has no provider {lost} any more, but {_count(stranded)} of it are "
        f"still rented: {_list(stranded)}. Put the provider's entries back under 'clouds', run "
        f"`hybrid down` (or drain them and wait), then take it out"
    )


def _count(instances: Collection[Instance]) -> str:
    return f"{len(instances)} instance{'' if len(instances) == 1 else 's'}"


def _list(instances: Iterable[Instance]) -> str:
    words = [
        f"{i.instance_id} ({i.offer.provider} {i.provider_id or 'id unknown'}, {i.state.value})"
        for i in instances
    ]
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")

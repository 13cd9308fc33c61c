"""Rules judged on the words of the file, so that a mistake elsewhere does not hide them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from hybrid.core.quantity import shown
from hybrid.settings.catalogue import known_keys
from hybrid.settings.machines import Pool
from hybrid.settings.problem import Path
from hybrid.settings.words import INFRA, has_password

Found: TypeAlias = tuple[Path, str]
"""Where, and what is wrong with what to write instead."""

_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:password|passwd|secret|secret_key|access_key|access_key_id|api_key|private_key"
    r"|token)",
    re.IGNORECASE,
)
_VERY_CLOSE = 0.8
# Words of other tools that cannot belong to a provider: they mean a common key of a pool.
_POOL_SYNONYMS = {
    "cloud": "infra",
    "gpu": "accelerators",
    "gpus": "accelerators",
    "price": "usd_per_hour",
    "provider": "infra",
    "spot": "use_spot",
}


def broken_in_words(
    content: Mapping[str, object], *, providers: Collection[str], is_ledger_from_file: bool
) -> Iterator[Found]:
    """Yield every broken rule that the words of the file show.

    Args:
        content: The file, with the environment's values in it.
        providers: Names that an installed provider answers to.
        is_ledger_from_file: Whether `controller.ledger` stands in the file.
    """
    yield from _secrets(content)
    yield from _hosts_with_one_name(content)
    yield from _lists_of_pools(content)
    yield from _renting_without_a_cap(content)
    yield from _misspelt_pool_keys(content)
    yield from _unknown_providers(content, providers)
    if is_ledger_from_file:
        yield from _password_of_the_ledger(content)


def pools(content: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Yield every pool that is a mapping, with its place."""
    clouds = content.get("clouds")
    for kind in ("any_of", "ordered"):
        entries = clouds.get(kind) if isinstance(clouds, Mapping) else None
        for place, pool in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(pool, Mapping):
                yield ("clouds", kind, place), pool


def _price_overrides(
    content: Mapping[str, object],
) -> Iterator[tuple[Path, Mapping[str, object]]]:
    prices = content.get("prices")
    entries = prices.get("overrides") if isinstance(prices, Mapping) else None
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, Mapping):
            yield ("prices", "overrides", place), entry


def _secrets(value: object, path: Path = ()) -> Iterator[Found]:
    """Yield keys that hold a secret: none belongs in a file that goes into a repository."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _secrets(item, (*path, place))
    if not isinstance(value, Mapping) or path[-1:] == ("labels",):
        return
    for key, item in value.items():
        if _SECRET_KEY.fullmatch(key) and item is not None:
            yield (
                (*path, key),
                "a secret does not belong in this file; remove it, since each cloud's SDK finds "
                "its own credentials (environment, profile or instance role)",
            )
        else:
            yield from _secrets(item, (*path, key))


def _hosts_with_one_name(content: Mapping[str, object]) -> Iterator[Found]:
    onprem = content.get("onprem")
    hosts = onprem.get("hosts") if isinstance(onprem, Mapping) else None
    seen: dict[str, int] = {}
    for place, host in enumerate(hosts if isinstance(hosts, list) else ()):
        name = host.get("name") if isinstance(host, Mapping) else None
        # Names become folders, and some file systems do not tell A from a.
        if isinstance(name, str) and seen.setdefault(name.lower(), place) != place:
            first = seen[name.lower()]
            text = f"{shown(name)} is also the name of hosts[{first}]; give each its own"
            yield ("onprem", "hosts", place, "name"), text


def _lists_of_pools(content: Mapping[str, object]) -> Iterator[Found]:
    clouds = content.get("clouds")
    if not isinstance(clouds, Mapping):
        return
    lists = [kind for kind in ("any_of", "ordered") if clouds.get(kind) is not None]
    if len(lists) == 2:
        yield (
            ("clouds",),
            "any_of and ordered are both here; keep any_of (the cheapest that fits wins) or "
            "ordered (the first with stock wins)",
        )
    elif not lists or clouds[lists[0]] == []:
        yield (
            ("clouds", *lists),
            "there is no pool; list one under any_of or ordered, or remove clouds to rent nothing",
        )


def _renting_without_a_cap(content: Mapping[str, object]) -> Iterator[Found]:
    budget = content.get("budget")
    caps = budget.values() if isinstance(budget, Mapping) else ()
    if any(pools(content)) and all(cap is None for cap in caps):
        yield (
            ("budget",),
            "there is no cap, so renting could cost any sum; set at least one of nodes, gpus, "
            "usd_per_hour, usd_per_day or usd_per_month, for example usd_per_day: 100",
        )


def _misspelt_pool_keys(content: Mapping[str, object]) -> Iterator[Found]:
    """Yield each key of a pool that is nearly one of the common keys.

    A pool may have keys of its provider's own, so a key that is merely unknown is none of our
    business; one that is a slip of the pen would be reported far from its cause.
    """
    common = known_keys(Pool)
    for path, pool in pools(content):
        for key in pool.keys() - set(common):
            close = difflib.get_close_matches(key, common, n=1, cutoff=_VERY_CLOSE)
            meant = _POOL_SYNONYMS.get(key) or "".join(close)
            if meant:
                yield (*path, key), f"the key {shown(key)} is not known; did you mean {meant}?"


def _unknown_providers(
    content: Mapping[str, object], providers: Collection[str]
) -> Iterator[Found]:
    for path, pool in [*pools(content), *_price_overrides(content)]:
        infra = pool.get("infra")
        if isinstance(infra, str) and INFRA.fullmatch(infra):
            name = infra.partition("/")[0]
            if name not in providers:
                yield (*path, "infra"), _unknown(name, providers)
    blocks = content.get("providers")
    for name, block in blocks.items() if isinstance(blocks, Mapping) else ():
        if name not in providers:
            yield ("providers", name), _unknown(name, providers)
        if isinstance(block, Mapping) and "pools" in block:
            text = "pools stand under clouds.any_of or clouds.ordered; move them there"
            yield ("providers", name, "pools"), text


def _unknown(name: str, providers: Collection[str]) -> str:
    if not providers:
        return (
            f"{shown(name)} is not an installed provider, nor is any other; install this program "
            "with pip, for example `pip install -e .`"
        )
    return f"{shown(name)} is not an installed provider; known are {', '.join(sorted(providers))}"


def _password_of_the_ledger(content: Mapping[str, object]) -> Iterator[Found]:
    controller = content.get("controller")
    url = controller.get("ledger") if isinstance(controller, Mapping) else None
    if isinstance(url, str) and has_password(url):
        yield (
            ("controller", "ledger"),
            "a password does not belong in this file; remove the URL here and set the variable "
            "HYBRID_LEDGER_URL",
        )

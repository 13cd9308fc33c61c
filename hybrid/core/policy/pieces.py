"""Gangs as what must fit on one node each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from hybrid.core.models import Demand, Gang, Selector, Shape, Spread

Key: TypeAlias = tuple[object, ...]
"""Sorts and compares; equal only for what is equal."""


@dataclass(frozen=True)
class Pieces:
    """What a gang asks for, with equal bundles counted: a thousand of them are one unit.

    Attributes:
        units: What must fit on one node each, the largest first. A `STRICT_PACK` gang is one
            unit: the sum of its bundles.
        is_apart: Each needs a node of its own.
        key: Equal for gangs that ask for the same.
    """

    units: tuple[Demand, ...]
    is_apart: bool
    key: Key

    @classmethod
    def of(cls, gang: Gang) -> Pieces:
        """Return the pieces of a gang."""
        units = (_sum(gang.bundles),) if gang.spread is Spread.STRICT_PACK else _count(gang.bundles)
        is_apart = gang.spread is Spread.STRICT_SPREAD
        key = (is_apart, *((_key(unit), unit.count) for unit in units))
        return cls(units, is_apart, key)


def selector_key(selectors: tuple[Selector, ...]) -> Key:
    """Return a key that sorts selectors."""
    return tuple(tuple((r.key, r.is_negated, r.values) for r in s) for s in selectors)


def gpus(shape: Shape) -> float:
    """Return the GPUs in a shape."""
    return shape.get("GPU", 0.0)


def total(bundles: Iterable[Demand]) -> dict[str, float]:
    """Return the sum of all requests' shapes."""
    amounts: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.shape.items():
            amounts[name] = amounts.get(name, 0.0) + amount * bundle.count
    return amounts


def _key(bundle: Demand) -> Key:
    return tuple(sorted(bundle.shape.items())), selector_key(bundle.selectors)


def _count(bundles: Iterable[Demand]) -> tuple[Demand, ...]:
    counts: dict[Key, int] = {}
    first: dict[Key, Demand] = {}
    for bundle in bundles:
        key = _key(bundle)
        first.setdefault(key, bundle)
        counts[key] = counts.get(key, 0) + bundle.count
    order = sorted(counts, key=lambda key: (-gpus(first[key].shape), key))
    return tuple(first[key].model_copy(update={"count": counts[key]}) for key in order)


def _sum(bundles: tuple[Demand, ...]) -> Demand:
    # All bundles share one node, so every bundle's first choice must hold at once. Bundles of
    # a placement group have no fallbacks in Ray.
    rules = tuple(rule for b in bundles for rule in (b.selectors[0] if b.selectors else ()))
    unique = tuple(dict.fromkeys(rules))
    return Demand(shape=total(bundles), count=1, selectors=(unique,) if unique else ())

"""Packing work into capacity. Equal nodes are packed as one group, so size costs little."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from hybrid.core.labels import admits
from hybrid.core.models import Demand, Gang, Labels, Selector, Shape, Spread

# Ray counts resources in units of 1/10,000; less than half of that is rounding.
_EPSILON = 5e-5

Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Axis:
    """The resources and label keys that matter for the work at hand; the rest is ignored.

    Attributes:
        resources: Names, GPUs first; a vector has one number for each.
        keys: Label keys that some selector mentions, sorted.
        least: The smallest request in each resource. A node with less free in one of them can
            hold nothing, and is forgotten.
    """

    resources: tuple[str, ...]
    keys: tuple[str, ...]
    least: Vector

    @classmethod
    def of(cls, demands: Iterable[Demand]) -> Axis:
        """Return the axis on which all of `demands` can be compared."""
        demands = tuple(demands)
        names = {name for demand in demands for name in demand.shape}
        # GPUs first: most nodes of a busy cluster are ruled out by their first number.
        resources = tuple(sorted(names, key=lambda name: (name != "GPU", name)))
        keys = {r.key for demand in demands for selector in demand.selectors for r in selector}
        least = tuple(min(d.shape.get(name, 0.0) for d in demands) for name in resources)
        return cls(resources, tuple(sorted(keys)), least)

    def vector(self, shape: Shape) -> Vector:
        """Return `shape` as one number a resource."""
        return tuple(shape.get(name, 0.0) for name in self.resources)


@dataclass(frozen=True, order=True)
class Place:
    """A kind of node, apart from what is free on it. The order is that of filling.

    Attributes:
        is_coming: It does not exist yet: a booting instance or a joining host.
        is_cloud: It is rented. Home is filled first.
        labels: Values of the axis' keys, `""` for an absent one.
    """

    is_coming: bool
    is_cloud: bool
    labels: tuple[str, ...]


@dataclass
class Placed:
    """How many requests went where."""

    now: int = 0
    coming: int = 0

    @property
    def count(self) -> int:
        """Return all of them."""
        return self.now + self.coming

    def add(self, place: Place, count: int) -> None:
        """Count requests placed."""
        if place.is_coming:
            self.coming += count
        else:
            self.now += count


@dataclass
class Room:
    """Free capacity: for each place, how many nodes have how much free."""

    axis: Axis
    nodes: dict[Place, dict[Vector, int]] = field(default_factory=dict)
    _places: dict[Selector, list[Place]] = field(default_factory=dict)

    def add(
        self,
        free: Shape,
        labels: Labels,
        *,
        is_cloud: bool,
        is_coming: bool = False,
        count: int = 1,
    ) -> None:
        """Add nodes with this much free."""
        place = Place(is_coming, is_cloud, tuple(labels.get(k, "") for k in self.axis.keys))
        if place not in self.nodes:
            self.nodes[place] = {}
            self._places.clear()
        self._put(place, self.axis.vector(free), count)

    def copy(self) -> Room:
        """Return a room that can be changed without changing this one."""
        nodes = {place: dict(free) for place, free in self.nodes.items()}
        return Room(self.axis, nodes, self._places)

    def has_space(self, demand: Demand) -> bool:
        """Return whether one such request fits somewhere."""
        return self._first(self.axis.vector(demand.shape), demand.selectors) is not None

    def take(self, demand: Demand, count: int) -> Placed:
        """Place as many of `count` requests as fit, preferred places and home first."""
        need = self.axis.vector(demand.shape)
        placed = Placed()
        for selector in demand.selectors or ((),):
            for place in self._admitting(selector):
                for free in sorted(self._fitting(need, place)):
                    if placed.count >= count:
                        return placed
                    placed.add(place, self._fill(place, free, need, count - placed.count))
        return placed

    def take_gang(self, gang: Gang) -> Placed | None:
        """Place all bundles, or change nothing and return `None`."""
        trial = self.copy()
        placed = Placed()
        if trial.take_bundles(gang, placed):
            return None
        self.nodes = trial.nodes
        return placed

    def take_bundles(self, gang: Gang, placed: Placed) -> list[Demand]:
        """Place what fits of a gang's bundles and return the rest."""
        kept_apart: list[tuple[Place, Vector]] = []
        left = []
        for bundle in units(gang):
            need = self.axis.vector(bundle.shape)
            found = self._first(need, bundle.selectors)
            if found is None:
                left.append(bundle)
                continue
            place, free = found
            placed.add(place, 1)
            rest = _less(free, need, times=1)
            self._remove(place, free, 1)
            if gang.spread is Spread.STRICT_SPREAD:
                # This node has its bundle: keep it out of the way of the others.
                kept_apart.append((place, rest))
            else:
                self._put(place, rest, 1)
        for place, rest in kept_apart:
            self._put(place, rest, 1)
        return left

    def _first(self, need: Vector, selectors: tuple[Selector, ...]) -> tuple[Place, Vector] | None:
        for selector in selectors or ((),):
            for place in self._admitting(selector):
                fitting = self._fitting(need, place)
                if fitting:
                    return place, min(fitting)
        return None

    def _admitting(self, selector: Selector) -> list[Place]:
        if selector not in self._places:
            keys = self.axis.keys
            self._places[selector] = [
                place
                for place in sorted(self.nodes)
                if admits(selector, {k: v for k, v in zip(keys, place.labels, strict=True) if v})
            ]
        return self._places[selector]

    def _fitting(self, need: Vector, place: Place) -> list[Vector]:
        fitting = []
        for free in self.nodes[place]:
            for n, f in zip(need, free):  # noqa: B905 - the hot loop; both follow the axis
                if n > f + _EPSILON:
                    break
            else:
                fitting.append(free)
        return fitting

    def _fill(self, place: Place, free: Vector, need: Vector, count: int) -> int:
        """Place up to `count` requests on nodes with `free` each; return how many."""
        nodes = self.nodes[place][free]
        per_node = _times(need, free)
        if per_node is None:
            return count
        full = min(nodes, count // per_node)
        rest = min(count - full * per_node, per_node) if full < nodes else 0
        self._move(place, free, need, times=per_node, nodes=full)
        self._move(place, free, need, times=rest, nodes=1 if rest else 0)
        return full * per_node + rest

    def _move(self, place: Place, free: Vector, need: Vector, *, times: int, nodes: int) -> None:
        if nodes:
            self._remove(place, free, nodes)
            self._put(place, _less(free, need, times=times), nodes)

    def _put(self, place: Place, free: Vector, count: int) -> None:
        if all(f + _EPSILON >= n for n, f in zip(self.axis.least, free, strict=True)):
            self.nodes[place][free] = self.nodes[place].get(free, 0) + count

    def _remove(self, place: Place, free: Vector, count: int) -> None:
        self.nodes[place][free] -= count
        if not self.nodes[place][free]:
            del self.nodes[place][free]


def units(gang: Gang) -> tuple[Demand, ...]:
    """Return what must fit on one node each, the largest first.

    A `STRICT_PACK` gang is one unit: the sum of its bundles.
    """
    if gang.spread is Spread.STRICT_PACK:
        return (_sum(gang.bundles),)
    singles = [b.model_copy(update={"count": 1}) for b in gang.bundles for _ in range(b.count)]
    return tuple(sorted(singles, key=lambda b: (-gpus(b.shape), sorted(b.shape.items()))))


def gpus(shape: Shape) -> float:
    """Return the GPUs in a shape."""
    return shape.get("GPU", 0.0)


def fits(need: Shape, free: Shape) -> bool:
    """Return whether one request fits what is free."""
    return all(amount <= free.get(name, 0.0) + _EPSILON for name, amount in need.items())


def total(bundles: Iterable[Demand]) -> dict[str, float]:
    """Return the sum of all requests' shapes."""
    amounts: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.shape.items():
            amounts[name] = amounts.get(name, 0.0) + amount * bundle.count
    return amounts


def _sum(bundles: tuple[Demand, ...]) -> Demand:
    # All bundles share one node, so every bundle's first choice must hold at once. Bundles of
    # a placement group have no fallbacks in Ray.
    rules = tuple(rule for b in bundles for rule in (b.selectors[0] if b.selectors else ()))
    unique = tuple(dict.fromkeys(rules))
    return Demand(shape=total(bundles), count=1, selectors=(unique,) if unique else ())


def _times(need: Vector, free: Vector) -> int | None:
    """Return how often `need` fits, at least 1 by contract; `None` if it needs nothing."""
    ratios = [(f + _EPSILON) / n for n, f in zip(need, free, strict=True) if n > _EPSILON]
    return math.floor(min(ratios)) if ratios else None


def _less(free: Vector, need: Vector, *, times: int) -> Vector:
    return tuple(max(0.0, round(f - n * times, 4)) for n, f in zip(need, free, strict=True))

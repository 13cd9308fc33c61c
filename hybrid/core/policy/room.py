"""Packing work into capacity. Equal nodes are packed as one group, so size costs little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from hybrid.core.labels import admits
from hybrid.core.models import Demand, Labels, Selector, Shape
from hybrid.core.policy.pieces import Pieces

# Ray counts resources in units of 1/10,000; less than half of that is rounding.
_UNITS = 10_000

Vector: TypeAlias = tuple[int, ...]
"""Amounts on an axis, in Ray's units: whole numbers, so that sums are exact."""


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
        return cls(resources, tuple(sorted(keys)), tuple(map(_units, least)))

    def vector(self, shape: Shape) -> Vector:
        """Return `shape` as one number a resource."""
        return tuple(_units(shape.get(name, 0.0)) for name in self.resources)

    def amounts(self, vector: Vector) -> dict[str, float]:
        """Return the shape of a vector."""
        return {n: v / _UNITS for n, v in zip(self.resources, vector, strict=True)}


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
    _by_label: dict[str, dict[str, list[Place]]] = field(default_factory=dict)
    _coming: list[tuple[Place, Vector]] = field(default_factory=list)

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
            self._by_label.clear()
        size = self.axis.vector(free)
        self._put(place, size, count)
        if is_coming:
            self._coming += [(place, size)] * count

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits anywhere, since full nodes are forgotten."""
        return not any(self.nodes.values())

    def copy(self) -> Room:
        """Return a room that can be changed without changing this one."""
        nodes = {place: dict(free) for place, free in self.nodes.items()}
        # A place is known to both for ever, so what is known of places stays true in the copy.
        return Room(self.axis, nodes, dict(self._places), dict(self._by_label), [*self._coming])

    def has_space(self, demand: Demand) -> bool:
        """Return whether one such request fits somewhere."""
        need = self.axis.vector(demand.shape)
        return any(
            self._fitting(need, place)
            for selector in demand.selectors or ((),)
            for place in self._admitting(selector)
        )

    def take(self, demand: Demand, count: int, *, is_coming: bool | None = None) -> Placed:
        """Place as many of `count` requests as fit, preferred places and home first.

        Args:
            demand: The kind of request.
            count: How many.
            is_coming: Only places that are coming, or only places that are there.
        """
        need = self.axis.vector(demand.shape)
        placed = Placed()
        for selector in demand.selectors or ((),):
            for place in self._admitting(selector):
                if is_coming is not None and place.is_coming is not is_coming:
                    continue
                for free in sorted(self._fitting(need, place)):
                    if placed.count >= count:
                        return placed
                    placed.add(place, self._fill(place, free, need, count - placed.count))
        return placed

    def fill_coming(self, wanted: Sequence[tuple[Demand, int]]) -> list[int]:
        """Return how many of each would fit what is coming, filled node by node.

        The nodes in the order they were added, each with what it takes in the order of `wanted`:
        so were they chosen when they were launched. Changes nothing.
        """
        left = [count for _, count in wanted]
        needs = [self.axis.vector(demand.shape) for demand, _ in wanted]
        admitted: dict[Place, list[int]] = {}
        for (place, free), same in groupby(self._coming_in_order()):
            if place not in admitted:
                admitted[place] = [
                    n
                    for n, (demand, _) in enumerate(wanted)
                    if any(place in self._admitting(s) for s in demand.selectors or ((),))
                ]
            nodes = len(tuple(same))
            while nodes:
                able = [(n, needs[n], left[n]) for n in admitted[place] if left[n]]
                takes = self._fill_one(free, able)
                if not takes:
                    break
                alike = min(nodes, *(left[n] // times for n, times in takes))
                nodes -= alike
                for n, times in takes:
                    left[n] -= times * alike
        return [count - rest for (_, count), rest in zip(wanted, left, strict=True)]

    def _fill_one(
        self, free: Vector, wanted: list[tuple[int, Vector, int]]
    ) -> list[tuple[int, int]]:
        """Return (number, times) of what one node takes, from (number, need, count)."""
        takes = []
        for number, need, count in wanted:
            if covers(free, need):
                fitting = _times(need, free)
                times = count if fitting is None else min(count, fitting)
                takes.append((number, times))
                free = _less(free, need, times=times)
                if not covers(free, self.axis.least):
                    break
        return takes

    def _coming_in_order(self) -> list[tuple[Place, Vector]]:
        """Return the nodes that come, in the order they were added; then those a gang is on."""
        counts = {place: dict(nodes) for place, nodes in self.nodes.items() if place.is_coming}
        nodes = []
        for place, free in self._coming:
            if counts[place].get(free):
                counts[place][free] -= 1
                nodes.append((place, free))
        used = ((p, free, count) for p, rest in counts.items() for free, count in rest.items())
        for place, free, count in sorted(used):
            nodes += [(place, free)] * count
        return nodes

    def take_gang(self, gang: Pieces) -> Placed | None:
        """Place the whole gang, or change nothing and return `None`."""
        before = {place: dict(free) for place, free in self.nodes.items()}
        placed = Placed()
        taken: list[_Taken] = []
        for unit in gang.units:
            # A node that has its bundle is kept out of the way of the others.
            is_apart = gang.is_apart
            found = self._take_nodes(unit, taken) if is_apart else self.take(unit, unit.count)
            if found.count < unit.count:
                self.nodes = before
                return None
            placed.now += found.now
            placed.coming += found.coming
        for place, rest, count in taken:
            self._put(place, rest, count)
        return placed

    def _take_nodes(self, unit: Demand, taken: list[_Taken]) -> Placed:
        """Place at most one request a node and move those nodes from the room to `taken`."""
        need = self.axis.vector(unit.shape)
        placed = Placed()
        for selector in unit.selectors or ((),):
            for place in self._admitting(selector):
                for free in sorted(self._fitting(need, place)):
                    count = min(self.nodes[place][free], unit.count - placed.count)
                    if not count:
                        return placed
                    self._remove(place, free, count)
                    taken.append((place, _less(free, need, times=1), count))
                    placed.add(place, count)
        return placed

    def _admitting(self, selector: Selector) -> list[Place]:
        """Return the places a selector admits, in the order of filling."""
        if selector not in self._places:
            keys = self.axis.keys
            self._places[selector] = [
                place
                for place in self._candidates(selector)
                if admits(selector, {k: v for k, v in zip(keys, place.labels, strict=True) if v})
            ]
        return self._places[selector]

    def _candidates(self, selector: Selector) -> list[Place]:
        """Return few places among which are all that the selector admits, in order."""
        rule = next((rule for rule in selector if not rule.is_negated), None)
        if rule is None:
            return sorted(self.nodes)
        if rule.key not in self._by_label:
            at = self.axis.keys.index(rule.key)
            found: dict[str, list[Place]] = {}
            for place in self.nodes:
                found.setdefault(place.labels[at], []).append(place)
            self._by_label[rule.key] = found
        places = self._by_label[rule.key]
        return sorted(place for value in set(rule.values) for place in places.get(value, ()))

    def _fitting(self, need: Vector, place: Place) -> list[Vector]:
        fitting = []
        for free in self.nodes[place]:
            for n, f in zip(need, free):  # noqa: B905 - the hot loop; both follow the axis
                if n > f:
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
        if covers(free, self.axis.least):
            self.nodes[place][free] = self.nodes[place].get(free, 0) + count

    def _remove(self, place: Place, free: Vector, count: int) -> None:
        self.nodes[place][free] -= count
        if not self.nodes[place][free]:
            del self.nodes[place][free]


_Taken: TypeAlias = tuple[Place, Vector, int]
"""Nodes set aside: where, what is left on each, and how many."""


def covers(free: Vector, need: Vector) -> bool:
    """Return whether one request fits what is free, both on one axis."""
    for n, f in zip(need, free):  # noqa: B905, SIM110 - hot; both follow the axis
        if n > f:
            return False
    return True


def fits(need: Shape, free: Shape) -> bool:
    """Return whether one request fits what is free."""
    return all(_units(amount) <= _units(free.get(name, 0.0)) for name, amount in need.items())


def _units(amount: float) -> int:
    # Ray lets a resource go below zero for a moment; there is nothing of it then.
    return round(amount * _UNITS) if amount > 0 else 0


def _times(need: Vector, free: Vector) -> int | None:
    """Return how often `need` fits, at least 1 by contract; `None` if it needs nothing."""
    return min((f // n for n, f in zip(need, free, strict=True) if n), default=None)


def _less(free: Vector, need: Vector, *, times: int) -> Vector:
    return tuple(f - n * times for n, f in zip(need, free, strict=True))

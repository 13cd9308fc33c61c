"""Free capacity node by node, changed as a plan grows.

`core.policy.room` packs anonymous requests into groups of equal nodes. Here every node counts,
since a job has a place of its own and may be moved from it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from hybrid.core.labels import admits_any
from hybrid.core.models import Demand, Labels, Node
from hybrid.core.models.work import JobView, Slot

# Ray counts resources in units of 1/10,000; less than half of that is rounding.
_HAIR = 5e-5
_NODE_ID = attrgetter("node_id")


@dataclass
class Nodes:
    """The nodes of one site.

    Attributes:
        free: GPUs free on each node.
        total: GPUs of each node.
        free_gpus: The sum of `free`.
    """

    free: dict[str, float] = field(default_factory=dict)
    total: dict[str, float] = field(default_factory=dict)
    labels: dict[str, Labels] = field(default_factory=dict)
    rest: dict[str, dict[str, float]] = field(default_factory=dict)
    free_gpus: float = 0.0
    _by_free: dict[float, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Nodes:
        """Return nodes with what is free on them."""
        made = cls()
        free, total, labels, by_free = made.free, made.total, made.labels, made._by_free
        # Made for each plan: in one pass without calls, since thousands of nodes are usual.
        for node in sorted(nodes, key=_NODE_ID):
            node_id, available = node.node_id, node.available
            gpus = available.get("GPU", 0.0)
            free[node_id] = gpus
            total[node_id] = node.total.get("GPU", 0.0)
            labels[node_id] = node.labels
            if gpus in by_free:
                by_free[gpus].append(node_id)
            else:
                by_free[gpus] = [node_id]
            if len(available) > ("GPU" in available):
                made.rest[node_id] = {k: v for k, v in available.items() if k != "GPU"}
        made.free_gpus = sum(free.values())
        return made

    def add(self, node: Node) -> None:
        """Add a node."""
        one = Nodes.of([node])
        self.free |= one.free
        self.total |= one.total
        self.labels |= one.labels
        self.rest |= one.rest
        self.free_gpus += one.free_gpus
        self._file(node.node_id, one.free[node.node_id])

    def remove(self, node_id: str) -> None:
        """Forget a node."""
        free = self.free.pop(node_id)
        self._unfile(node_id, free)
        self.free_gpus -= free
        for table in (self.total, self.labels, self.rest):
            table.pop(node_id, None)

    def copy(self) -> Nodes:
        """Return nodes that can be changed without changing these."""
        by_free = {free: list(ids) for free, ids in self._by_free.items()}
        rest = {node_id: dict(amounts) for node_id, amounts in self.rest.items()}
        return Nodes(dict(self.free), self.total, self.labels, rest, self.free_gpus, by_free)

    def levels(self) -> list[float]:
        """Return the amounts of free GPUs that occur, the smallest first."""
        return sorted(self._by_free)

    def at(self, free: float) -> list[str]:
        """Return the nodes with just so many GPUs free, in order of their ids."""
        return self._by_free.get(free, [])

    def admits(self, piece: Demand, node_id: str) -> bool:
        """Return whether a node has the labels and all but the GPUs that a piece asks for."""
        return self.admits_after(piece, node_id, ())

    def admits_after(self, piece: Demand, node_id: str, leaving: Iterable[JobView]) -> bool:
        """Return whether `admits` would hold after some single-node jobs have left the node."""
        if piece.selectors and not admits_any(piece.selectors, self.labels[node_id]):
            return False
        if len(piece.shape) == 1 and "GPU" in piece.shape:
            return True
        rest = dict(self.rest.get(node_id, {}))
        for job in leaving:
            for name, amount in job.pieces[0].shape.items():
                rest[name] = rest.get(name, 0.0) + amount
        return all(
            amount <= rest.get(name, 0.0) + _HAIR
            for name, amount in piece.shape.items()
            if name != "GPU"
        )

    def fit(self, job: JobView, *, without: Iterable[str] = ()) -> tuple[Slot, ...] | None:
        """Return where a job fits now, each piece on the fullest node that holds it.

        Args:
            job: What needs a place.
            without: Nodes that are not for it.
        """
        if job.gpus > self.free_gpus + _HAIR:
            return None
        slots: list[Slot] = []
        used = set(without)
        for piece, gpus in zip(job.pieces, job.sizes, strict=True):
            node_id = self._best(piece, gpus, used)
            if node_id is None:
                return None
            used.add(node_id)
            slots.append(Slot(node_id, gpus))
        return tuple(slots)

    def emptiest(self, job: JobView) -> list[str]:
        """Return the nodes that will probably be free for a job first; empty if it never fits."""
        found: list[str] = []
        order = [node_id for free in reversed(self.levels()) for node_id in self.at(free)]
        for piece, gpus in zip(job.pieces, job.sizes, strict=True):
            node_id = next(
                (
                    n
                    for n in order
                    if n not in found
                    and self.total[n] >= gpus - _HAIR
                    and admits_any(piece.selectors or ((),), self.labels[n])
                ),
                None,
            )
            if node_id is None:
                return []
            found.append(node_id)
        return found

    def take(self, job: JobView, slots: Iterable[Slot]) -> None:
        """Give a job its place."""
        for piece, slot in zip(job.pieces, slots, strict=False):
            self._change(slot.node_id, -slot.gpus, piece, -1)

    def give(self, job: JobView, slots: Iterable[Slot]) -> None:
        """Take a job from its place; nodes that are gone are passed over."""
        for piece, slot in zip(job.pieces, slots, strict=False):
            if slot.node_id in self.free:
                self._change(slot.node_id, slot.gpus, piece, 1)

    def _best(self, piece: Demand, gpus: float, used: set[str]) -> str | None:
        need = gpus - _HAIR
        is_plain = not piece.selectors and len(piece.shape) == 1 and need > 0
        for free in sorted(self._by_free):
            if free < need:
                continue
            for node_id in self._by_free[free]:
                if node_id not in used and (is_plain or self.admits(piece, node_id)):
                    return node_id
        return None

    def _change(self, node_id: str, added: float, piece: Demand, sign: int) -> None:
        before = self.free[node_id]
        after = before + added
        self._unfile(node_id, before)
        self.free[node_id] = after
        self.free_gpus += added
        self._file(node_id, after)
        if len(piece.shape) > 1 and node_id in self.rest:
            rest = self.rest[node_id]
            for name, amount in piece.shape.items():
                if name != "GPU":
                    rest[name] = rest.get(name, 0.0) + sign * amount

    def _file(self, node_id: str, free: float) -> None:
        insort(self._by_free.setdefault(free, []), node_id)

    def _unfile(self, node_id: str, free: float) -> None:
        ids = self._by_free[free]
        ids.remove(node_id)
        if not ids:
            del self._by_free[free]


@dataclass
class Board:
    """Both sites: `home` is filled first, `cloud` costs money."""

    home: Nodes = field(default_factory=Nodes)
    cloud: Nodes = field(default_factory=Nodes)

"""Follows the GPUs that recorded decisions saw in use, and takes them apart into jobs.

Exact: how many GPUs were busy on which node, at each recorded instant. Guessed: which of them
belong together. Two pieces that begin on one node between two looks are one, unless both were seen
to wait; one that ends while another of its size begins goes on as the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hybrid.core.models import Job, Node, NodeStatus
from hybrid.core.policy.plan import Snapshot
from hybrid.sim.recorded.queue import Started, Waiting

_SLACK_S = 60.0
"""Ray's word on a job, on the queue and on nodes may differ by this much in time."""

UNSEEN = "left Ray's queue and was not seen to run: ended between two looks, or cancelled"
STILL_WAITS = "still waits in Ray at the end: nobody knows how long it would run"
CUT_START = "ran when the record begins (or begins again); counted from there"
CUT_END = "still runs at the end; cut there"


@dataclass(frozen=True)
class Used:
    """GPUs that were in use, and are one job to the best of our knowledge."""

    gpus: int
    submit_s: float
    start_s: float
    end_s: float


@dataclass(eq=False)
class _Group:
    """Parts of a gang; they are one job."""

    left: int
    done: list[Used] = field(default_factory=list)


@dataclass
class _Piece:
    """GPUs of one node that are taken to belong together.

    Attributes:
        job: The ledger's job that holds them, which is told there.
        is_cut: Its start was not seen.
    """

    gpus: int
    submit_s: float
    start_s: float
    group: _Group | None = None
    job: Job | None = None
    is_cut: bool = False


class Usage:
    """What Ray had in use, look after look.

    Args:
        jobs: Those of the ledger whose drivers hold GPUs themselves; they are left out here.

    Attributes:
        notes: What was counted, by reason.
        lost: The same, of what is not in `found`.
    """

    def __init__(self, jobs: Sequence[Job] = ()) -> None:
        self.found: list[Used] = []
        self.notes: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._known = [job for job in jobs if job.started_at_s is not None]
        self._waiting = Waiting()
        self._late: list[Started] = []
        self._pieces: dict[str, list[_Piece]] = {}
        self._last_s: float | None = None

    def look(self, snapshot: Snapshot) -> None:
        """Take in what one decision saw."""
        if any(source.name == "ray" for source in snapshot.blind):
            return  # the nodes are those of an earlier look
        now_s = snapshot.now_s
        busy = {node.node_id: _busy(node) for node in snapshot.nodes}
        rises: dict[str, int] = {}
        for node_id in {*busy, *self._pieces}:
            pieces = self._pieces.setdefault(node_id, [])
            more = busy.get(node_id, 0) - sum(piece.gpus for piece in pieces)
            if more > 0:
                rises[node_id] = more
            elif more < 0:
                self._fall(pieces, -more, now_s)
        started = [*self._late, *self._waiting.look(snapshot)]
        self._rise(rises, started, now_s)
        self._pieces = {node_id: pieces for node_id, pieces in self._pieces.items() if pieces}
        self._last_s = now_s

    def finish(self) -> list[Used]:
        """Cut what still runs, and return all."""
        for pieces in self._pieces.values():
            for piece in pieces:
                is_last = piece.group is None or piece.group.left == 1
                self.notes[CUT_END] += piece.job is None and is_last
                self._end(piece, self._last_s or 0.0)
        self._pieces = {}
        self.lost[UNSEEN] += len(self._late)
        self.lost[STILL_WAITS] += self._waiting.count
        return self.found

    # --- more in use ----------------------------------------------------------------------

    def _rise(self, rises: dict[str, int], started: list[Started], now_s: float) -> None:
        self._take_known(rises, started, now_s)
        self._late = []
        for each in started:
            if (nodes := _places(each.bundles, rises)) is not None:
                group = _Group(len(nodes)) if len(nodes) > 1 else None
                for node_id, gpus in zip(nodes, each.bundles, strict=True):
                    rises[node_id] -= gpus
                    self._pieces[node_id].append(_Piece(gpus, each.submit_s, now_s, group))
            elif now_s - each.seen_s < _SLACK_S:
                self._late.append(each)
            else:
                self.lost[UNSEEN] += 1
        is_cut = self._last_s is None
        for node_id, gpus in rises.items():
            if gpus > 0:
                self.notes[CUT_START] += is_cut
                self._pieces[node_id].append(_Piece(gpus, now_s, now_s, is_cut=is_cut))

    def _take_known(self, rises: dict[str, int], started: list[Started], now_s: float) -> None:
        """Leave out the GPUs of drivers: the ledger knows better."""
        for job in list(self._known):
            gpus = math.ceil(job.spec.gpus)
            began_s, ended_s = job.started_at_s or 0.0, job.ended_at_s
            if began_s > now_s + _SLACK_S:
                continue
            if ended_s is not None and ended_s < now_s - _SLACK_S:
                self._known.remove(job)  # over before it could be seen
                continue
            if (nodes := _places((gpus,), rises)) is None:
                continue
            self._known.remove(job)
            rises[nodes[0]] -= gpus
            self._pieces[nodes[0]].append(_Piece(gpus, now_s, now_s, job=job))
            mine = next((each for each in started if each.bundles == (gpus,)), None)
            if mine is not None:
                started.remove(mine)

    # --- less in use ----------------------------------------------------------------------

    def _fall(self, pieces: list[_Piece], gpus: int, now_s: float) -> None:
        while gpus > 0:
            piece = min(pieces, key=lambda each: self._rank(each, gpus, now_s))
            if piece.gpus <= gpus:
                pieces.remove(piece)
                gpus -= piece.gpus
                self._end(piece, now_s)
                continue
            piece.gpus -= gpus
            # A part of it: what belongs to a gang or a driver says when that has ended.
            if piece.job is None and piece.group is None:
                self._end(replace(piece, gpus=gpus), now_s)
            return

    def _rank(self, piece: _Piece, gpus: int, now_s: float) -> tuple[int, float]:
        """Return how well a piece fits those that ended, the best lowest."""
        fits = piece.gpus <= gpus
        if piece.job is not None:
            ended_s = piece.job.ended_at_s
            is_over = ended_s is not None and ended_s <= now_s + _SLACK_S
            return (0 if is_over and fits else 4, piece.start_s)
        return (1 if piece.gpus == gpus else 2 if fits else 3, piece.start_s)

    def _end(self, piece: _Piece, now_s: float) -> None:
        if piece.job is not None:
            return
        used = Used(piece.gpus, piece.submit_s, piece.start_s, now_s)
        if piece.group is None:
            self._tell(used)
            return
        piece.group.done.append(used)
        piece.group.left -= 1
        if not piece.group.left:
            self._tell(_together(piece.group.done))

    def _tell(self, used: Used) -> None:
        if used.end_s > used.start_s:
            self.found.append(used)


def _busy(node: Node) -> int:
    if node.status is NodeStatus.DEAD:
        return 0
    # A node of four quarters is one GPU, whoever has them.
    return math.ceil(node.total.get("GPU", 0.0) - node.available.get("GPU", 0.0) - 1e-6)


def _places(bundles: Sequence[int], rises: dict[str, int]) -> list[str] | None:
    """Return a node for each bundle among those where more is in use, or `None`."""
    left = dict(rises)
    nodes = []
    for gpus in bundles:
        fitting = [node_id for node_id, more in left.items() if more >= gpus]
        if not fitting:
            return None
        best = min(fitting, key=lambda node_id: (left[node_id], node_id))
        left[best] -= gpus
        nodes.append(best)
    return nodes


def _together(parts: Sequence[Used]) -> Used:
    first = parts[0]
    gpus = sum(part.gpus for part in parts)
    # As long as its longest part: a gang holds all its places to its end.
    return replace(first, gpus=gpus, end_s=max(part.end_s for part in parts))


def usage_of(snapshots: Iterator[Snapshot], jobs: Sequence[Job]) -> Usage:
    """Return what was in use over all of them, finished."""
    usage = Usage(jobs)
    for snapshot in snapshots:
        usage.look(snapshot)
    usage.finish()
    return usage

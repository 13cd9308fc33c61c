"""Makes recorded decisions again: unchanged they must come out the same; changed: a what-if.

A what-if is open at its end: each snapshot is as it really was, so what another decision would have
led to is not in the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hybrid.core.models import Model
from hybrid.core.policy.decide import decide
from hybrid.core.policy.plan import Action, Plan, Snapshot
from hybrid.core.views import API_VERSION
from hybrid.sim.named import with_value
from hybrid.sim.recorded.reading import Recorded, RecordFiles
from hybrid.sim.traces.reading import OnPart
from hybrid.sim.traces.summary import TraceSkippedView, skipped_views

CAPS = "caps."
"""What names of caps begin with, as in `caps.gpu_count=8`; other names are of the policy."""
SHOWN = 50
"""Differences that are told one by one; the others are counted."""


class ReplayDifference(Model):
    """Decisions in a row that come out otherwise, and all in the same way.

    Attributes:
        from_at_s: Of the first.
        to_at_s: Of the last.
        decisions: How many.
        recorded: What was decided, such as `2 x launch gcp/a2`; empty for nothing.
        now: What would be decided.
        reasons: Why, in the words of the other plan: of its actions, or of what waits.
    """

    from_at_s: float
    to_at_s: float
    decisions: int
    recorded: tuple[str, ...]
    now: tuple[str, ...]
    reasons: tuple[str, ...]


class ReplayView(Model):
    """What recorded decisions come to when they are made again.

    Attributes:
        source: The file or folder.
        hybrid: Versions of the program that recorded them.
        changes: Parameters that were changed, by name; without any, all must be the same.
        decisions: How many there are.
        same: How many came out the same: with changes by their actions, else in every word.
        from_at_s: Of the first; `None` without any.
        to_at_s: Of the last.
        differences: The first of them.
        more: How many differences there are beyond those.
        skipped: What could not be used, by reason and file.
    """

    api_version: int = API_VERSION
    source: str
    hybrid: tuple[str, ...]
    changes: Mapping[str, str]
    decisions: int
    same: int
    from_at_s: float | None
    to_at_s: float | None
    differences: tuple[ReplayDifference, ...]
    more: int
    skipped: tuple[TraceSkippedView, ...]

    @property
    def is_same(self) -> bool:
        """Whether all came out the same."""
        return self.same == self.decisions


def replay(
    files: RecordFiles,
    source: str,
    changes: Mapping[str, str] | None = None,
    *,
    on_part: OnPart | None = None,
) -> ReplayView:
    """Make recorded decisions again.

    Args:
        files: The record.
        source: What people call it.
        changes: Parameters as people write them, by name; see `CAPS`.
        on_part: Is told how much is done.

    Raises:
        ConfigError: There is no such parameter; a file is no record.
    """
    book = _Book(changes or {})
    for recorded in files.each(on_part):
        book.make(recorded)
    skipped = [
        view.model_copy(update={"reason": f"{path.name}: {view.reason}"})
        for path, tally in files.tallies.items()
        for view in skipped_views(tally.result())
    ]
    return book.view(source, skipped)


@dataclass
class _Book:
    changes: Mapping[str, str]
    versions: dict[str, None] = field(default_factory=dict)
    count: int = 0
    same: int = 0
    from_s: float | None = None
    to_s: float | None = None
    rows: list[ReplayDifference] = field(default_factory=list)
    more: int = 0
    _is_open: bool = False

    def make(self, recorded: Recorded) -> None:
        """Make one decision again."""
        then, params = recorded.decision, recorded.params
        snapshot, at_s = then.snapshot, then.snapshot.now_s
        for key, text in self.changes.items():
            if key.startswith(CAPS):
                caps = with_value(snapshot.caps, key.removeprefix(CAPS), text)
                snapshot = snapshot.model_copy(update={"caps": caps})
            else:
                params = with_value(params, key, text)
        plan = decide(snapshot, params)
        self.versions[recorded.hybrid] = None
        self.count += 1
        self.from_s = at_s if self.from_s is None else self.from_s
        self.to_s = at_s
        before, now = told(then.plan.actions, snapshot), told(plan.actions, snapshot)
        if before == now if self.changes else plan == then.plan:
            self.same += 1
            self._is_open = False
        else:
            self._differ(at_s, before, now, _reasons(plan))

    def _differ(
        self, at_s: float, before: tuple[str, ...], now: tuple[str, ...], reasons: tuple[str, ...]
    ) -> None:
        last = self.rows[-1] if self.rows and self._is_open else None
        if last is not None and (last.recorded, last.now) == (before, now):
            update = {"to_at_s": at_s, "decisions": last.decisions + 1}
            self.rows[-1] = last.model_copy(update=update)
            return
        self._is_open = len(self.rows) < SHOWN
        if not self._is_open:
            self.more += 1
            return
        row = ReplayDifference(
            from_at_s=at_s, to_at_s=at_s, decisions=1, recorded=before, now=now, reasons=reasons
        )
        self.rows.append(row)

    def view(self, source: str, skipped: Iterable[TraceSkippedView]) -> ReplayView:
        """Return what it came to."""
        return ReplayView(
            source=source,
            hybrid=tuple(self.versions),
            changes=self.changes,
            decisions=self.count,
            same=self.same,
            from_at_s=self.from_s,
            to_at_s=self.to_s,
            differences=tuple(self.rows),
            more=self.more,
            skipped=tuple(skipped),
        )


def told(actions: Iterable[Action], snapshot: Snapshot) -> tuple[str, ...]:
    """Return what actions do, without reasons; equal launches together."""
    counts = Counter(_words(action, snapshot) for action in actions)
    return tuple(f"{count} x {words}" if count > 1 else words for words, count in counts.items())


def _words(action: Action, snapshot: Snapshot) -> str:
    match action.kind:
        case "launch":
            gang = " together" if action.gang else ""
            return f"launch {action.offer.offer_id}{gang}"
        case "drain":
            by_s = action.deadline_at_s - snapshot.now_s
            return f"drain {action.instance_id}" + (
                f" within {by_s:.0f} s, busy" if action.is_busy else ""
            )
        case "terminate":
            return f"terminate {action.instance_id}"
        case "suspend":
            return f"suspend {action.job_id}"
        case "start":
            return f"start {action.job_id} on {_places(action.slots)}"
        case "move":
            return f"move {action.job_id} to {_places(action.slots)} ({action.purpose})"


def _places(slots: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{node_id} ({gpus:g})" for node_id, gpus in slots)


def _reasons(plan: Plan) -> tuple[str, ...]:
    whys = [action.reason for action in plan.actions] or [each.reason for each in plan.findings]
    return tuple(dict.fromkeys(f"{why.code}: {why.message}" for why in whys))[:3]

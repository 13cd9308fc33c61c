"""What nodes of rented instances say of themselves, before and after they join."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hybrid.core.models import Instance

_MOST_EVENTS = 100
"""Events of one instance. What it says after that is shown, and not written down."""

_BROKEN = frozenset({"failed", "exited"})
_MAX_CHARS = 2000


@dataclass(frozen=True)
class Report:
    """What a node said last.

    Attributes:
        phase: One word of `hybrid.node.folder.Phase`.
        problem: Why it cannot work; `""` when all is well.
    """

    phase: str
    problem: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether Ray does not run there and will not."""
        return self.phase in _BROKEN

    def __str__(self) -> str:
        """Return it as a sentence."""
        return f"its node: {self.problem or self.phase}"


@dataclass
class Reports:
    """The last report of each live instance, in memory only: a broken node repeats its own.

    Filled by the API's threads, read by the loop's.
    """

    _by_id: dict[str, Report] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def note(self, instance_id: str, phase: str, problem: str) -> Report | None:
        """Take a report; return it if it is to be written down, `None` if it is no news."""
        report = Report(phase, plain(problem))
        if self._by_id.get(instance_id) == report:
            return None
        self._by_id[instance_id] = report
        count = self._counts[instance_id] = self._counts.get(instance_id, 0) + 1
        return report if count <= _MOST_EVENTS else None

    def get(self, instance_id: str) -> Report | None:
        """Return the last report of an instance."""
        return self._by_id.get(instance_id)

    def broken(self, instance_id: str) -> str:
        """Return why an instance's node will never work, in its own words; else `""`."""
        report = self._by_id.get(instance_id)
        return str(report) if report is not None and report.is_broken else ""

    def progress(self) -> Mapping[str, str]:
        """Return what each node said last, by our ids."""
        return {name: str(report) for name, report in self._by_id.copy().items()}

    def keep_only(self, instance_ids: Collection[str]) -> None:
        """Forget all others."""
        for name in self._counts.copy().keys() - set(instance_ids):
            self._by_id.pop(name, None)
            self._counts.pop(name, None)

    def told(self, instances: Iterable[Instance]) -> tuple[Instance, ...]:
        """Return instances that have no problem of their own with what their nodes complain of."""
        return tuple(self._told(instance) for instance in instances)

    def _told(self, instance: Instance) -> Instance:
        report = self._by_id.get(instance.instance_id)
        if instance.is_ended or instance.problem or report is None or not report.problem:
            return instance
        return instance.model_copy(update={"problem": str(report)})


def plain(text: str) -> str:
    """Return words of a stranger as one line that no terminal can take for anything else."""
    line = "".join(c if c.isprintable() else " " for c in text[:_MAX_CHARS])
    return " ".join(line.split())

"""Numbers every call that the controller makes, so that a test can act at any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

_T = TypeVar("_T")

# Reading calls change nothing outside: a crash next to one leaves the same world.
READS = frozenset(
    {
        "check_epoch",
        "events",
        "failures",
        "hosts",
        "instance",
        "instances",
        "is_alive",
        "job",
        "job_counts",
        "jobs",
        "list_instances",
        "live_instances",
        "log_end",
        "logs",
        "mode",
        "note",
        "offers",
        "payments",
        "probe",
        "problem",
        "spends",
        "statuses",
        "tasks",
        "view",
    }
)


class Crash(BaseException):
    """The controller's process is gone, at this very point."""


@dataclass(frozen=True)
class Point:
    """One side of one call.

    Attributes:
        number: Counted from 0 over the whole history.
        who: `ledger`, `ray`, `jobs` or a provider's name.
        call: Name of the method.
        is_after: The call has returned (or raised).
        is_failed: It raised.
        owner: Number of the controller that called.
    """

    number: int
    who: str
    call: str
    is_after: bool
    is_failed: bool = False
    owner: int = 0

    @property
    def is_read(self) -> bool:
        return self.call in READS

    def __str__(self) -> str:
        return f"{self.number} {'after' if self.is_after else 'before'} {self.who}.{self.call}"


@dataclass
class Tracer:
    """Counts calls, and hands each side of each to a hook.

    Attributes:
        hook: Called at every point; may raise `Crash`.
        points: All points so far, when `is_recording`.
    """

    hook: Callable[[Point], None] | None = None
    is_recording: bool = False
    points: list[Point] = field(default_factory=list)
    count: int = 0

    def at(self, number: int, act: Callable[[], object]) -> None:
        """Do something at one point, once."""

        def hook(point: Point) -> None:
            if point.number == number:
                self.hook = None
                act()

        self.hook = hook

    def later_calls(self, number: int, *names: str) -> list[Point]:
        """Return recorded calls that began after a point.

        The call that this very point belongs to was on its way and cannot be called back.
        """
        return [
            p for p in self.points if p.call in names and not p.is_after and p.number > number + 1
        ]

    def wrap(self, target: _T, who: str, *, owner: int = 0) -> _T:
        """Return something that looks like `target` and has all of its calls counted."""
        return cast("_T", _Traced(self, target, who, owner))

    def pass_point(
        self, who: str, call: str, owner: int, *, is_after: bool, is_failed: bool = False
    ) -> None:
        """Count a point."""
        number = self.count
        self.count += 1
        if self.hook is None and not self.is_recording:
            return
        point = Point(number, who, call, is_after, is_failed, owner)
        if self.is_recording:
            self.points.append(point)
        if self.hook is not None:
            self.hook(point)


class _Traced:
    """A stand-in for one object."""

    def __init__(self, tracer: Tracer, target: object, who: str, owner: int) -> None:
        self._tracer, self._target, self._who, self._owner = tracer, target, who, owner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value
        tracer, who, owner = self._tracer, self._who, self._owner

        def call(*args: Any, **kwargs: Any) -> Any:
            tracer.pass_point(who, name, owner, is_after=False)
            try:
                answer = value(*args, **kwargs)
            except Exception:
                tracer.pass_point(who, name, owner, is_after=True, is_failed=True)
                raise
            tracer.pass_point(who, name, owner, is_after=True)
            return answer

        self.__dict__[name] = call
        return call

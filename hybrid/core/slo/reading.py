"""What is promised, what was measured, and what was concluded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

LEAST_WINDOW_S = 20.0
"""Ray's processes tell their figures every 10 s: a shorter window would be empty now and then."""


class SloState(StrEnum):
    """Whether a promise is kept."""

    MET = "met"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Slo:
    """A promise: this percentile of the latency stays at or below the target.

    Attributes:
        target_ms: The value that must not be exceeded.
        percentile: Above 0 and below 100.
        window_s: What is judged.
        break_share: Broken when more than this share of the measured time is over the target.
        mend_share: A broken promise is kept again when no more than this share is. Less than
            `break_share`, so that a service at its limit does not flap.
    """

    target_ms: float
    percentile: float = 95.0
    window_s: float = 60.0
    break_share: float = 0.5
    mend_share: float = 0.25

    @property
    def step_s(self) -> float:
        """How long one reading is: never shorter than the period at which Ray's figures change."""
        return max(LEAST_WINDOW_S / 2, self.window_s / 6)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one stretch of time has shown.

    Attributes:
        at_s: Its end, by a clock that does not jump.
        span_s: Its length.
        value_ms: The percentile; `None` when it is not known.
        why: Why it is not known, or what else is to be said.
        rate_rps: Requests per second; `None` when not known.
        is_quiet: It was seen, whole, that no request came. The latency is unknown all the same.
    """

    at_s: float
    span_s: float
    value_ms: float | None = None
    why: str = ""
    rate_rps: float | None = None
    is_quiet: bool = False

    @property
    def known_ms(self) -> float | None:
        """The value when it can be one: NaN, below zero and infinite are not."""
        value = self.value_ms
        return value if value is not None and math.isfinite(value) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class Load:
    """How much work a service has and how many replicas do it; `None` for what is not known.

    Attributes:
        running: Replicas that serve.
        target: Replicas that Serve wants now.
        in_system: Requests that wait or are served at this moment.
    """

    running: int | None = None
    target: int | None = None
    in_system: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a promise is kept, as of the last look.

    Attributes:
        state: The answer.
        since_s: Since when it is the answer; for `broken`, since when it was over the target.
        value_ms: The median of what was measured in the window; `None` when unknown.
        why: One sentence.
        rate_rps: Requests per second over the window; `None` when not known.
        known_state: The last answer that was not `unknown`.
        is_quiet: The window was seen whole, and no request came in it.
    """

    state: SloState = SloState.UNKNOWN
    since_s: float | None = None
    value_ms: float | None = None
    why: str = "nothing was measured yet"
    rate_rps: float | None = None
    known_state: SloState = SloState.UNKNOWN
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at a service brought.

    Attributes:
        reading: `None` when nothing new can be said yet.
        load: Work and replicas.
    """

    reading: Reading | None = None
    load: Load = Load()

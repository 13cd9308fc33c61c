"""When to repeat a call that has to be repeated until it works."""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.core.backoff import backoff_s
from hybrid.core.ports import Clock

_CAP_S = 60.0


@dataclass
class Retries:
    """Tries so far, by the thing they are about; the pauses between them grow.

    Attributes:
        base_s: Pause after the first try.
    """

    clock: Clock
    base_s: float
    _tries: dict[str, int] = field(default_factory=dict)
    _due_at_s: dict[str, float] = field(default_factory=dict)

    def is_due(self, key: str) -> bool:
        """Return whether it may be tried now."""
        return self.clock.monotonic_s() >= self._due_at_s.get(key, 0.0)

    def tried(self, key: str) -> None:
        """Count a try that begins now."""
        self._tries[key] = self._tries.get(key, 0) + 1
        delay_s = backoff_s(self._tries[key], base_s=self.base_s, cap_s=_CAP_S)
        self._due_at_s[key] = self.clock.monotonic_s() + delay_s

    def keep_only(self, keys: set[str]) -> None:
        """Forget everything else, so that a long life needs no more memory."""
        self._tries = {k: v for k, v in self._tries.items() if k in keys}
        self._due_at_s = {k: v for k, v in self._due_at_s.items() if k in keys}

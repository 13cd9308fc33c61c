"""What is to go wrong: each fault waits for a request that it fits, and is used up by it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from tests.emulators.gcp.answers import ApiError, OperationFailure


@dataclass
class Fault:
    """One kind of trouble.

    Attributes:
        method: Which requests, such as `instances.insert` or `*`.
        zone: Only in this zone; `""` for all.
        times: How many requests it hits.
        status, reason, message: The error to answer with; status 0 answers as usual.
        is_after: The work is done first, and only the answer is bad.
        is_html: Answer with a page instead of an error in JSON.
        is_dropped: Close the connection instead of answering.
        delay_s: Answer late.
        code: The operation is accepted, and fails later with this.
        takes_s: The operation takes this long instead of the usual time.
        leaves: So many instances stay behind when an insert fails.
    """

    method: str = "instances.insert"
    zone: str = ""
    times: int = 1
    status: int = 0
    reason: str = ""
    message: str = "injected"
    is_after: bool = False
    is_html: bool = False
    is_dropped: bool = False
    delay_s: float = 0.0
    code: str = ""
    takes_s: float | None = None
    leaves: int = 0

    @property
    def is_of_operation(self) -> bool:
        """Whether it strikes after the request was accepted."""
        return bool(self.code) or self.takes_s is not None

    def error(self) -> ApiError | None:
        return ApiError(self.status, self.message, self.reason) if self.status else None

    def failure(self) -> OperationFailure | None:
        # Google says that the two http fields may be absent; then only the errors tell.
        return OperationFailure(self.code, self.message, self.status) if self.code else None


@dataclass
class Faults:
    """All trouble that waits."""

    waiting: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, **facts: Any) -> None:
        """Add a fault; see `Fault`. Raises `TypeError` for an unknown fact."""
        known = {item.name for item in fields(Fault)}
        if unknown := sorted(set(facts) - known):
            raise TypeError(f"{unknown[0]!r} is no fact of a fault; known are {sorted(known)}")
        with self._lock:
            self.waiting.append(Fault(**facts))

    def take(self, method: str, zone: str, *, of_operation: bool) -> Fault | None:
        """Return the first fault that fits a request, and use it once."""
        with self._lock:
            for fault in self.waiting:
                fits = fnmatchcase(method, fault.method) and fault.zone in ("", zone)
                if fits and fault.times > 0 and fault.is_of_operation == of_operation:
                    fault.times -= 1
                    return fault
        return None

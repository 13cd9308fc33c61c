"""What the emulator can be told to do wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

What: TypeAlias = Literal["refuse", "html", "empty", "garbage", "drop", "lose", "fail_late", "slow"]


@dataclass
class Fault:
    """One thing that goes wrong.

    Attributes:
        what: `refuse` with `status` and `code`; `html`, a proxy's page; `empty`, no body;
            `garbage`, half of a JSON text with status 200; `drop`, the connection ends and
            nothing is done; `lose`, the work is done and the connection ends; `fail_late`, the
            work is done and the answer is an error; `slow`, a right answer after `delay_s`.
        call: Part of "METHOD /path?query", as a regular expression.
        times: How often.
        skip: How many calls go well before it.
    """

    what: What
    call: str = ""
    status: int = 500
    code: str = "InternalError"
    message: str = "injected"
    times: int = 1
    skip: int = 0
    delay_s: float = 0.0


def next_fault(faults: list[Fault], call: str) -> Fault | None:
    """Return the fault that hits this call, and count it."""
    for fault in faults:
        if fault.times < 1 or not re.search(fault.call, call):
            continue
        if fault.skip > 0:
            fault.skip -= 1
            continue
        fault.times -= 1
        return fault
    return None


REFUSALS: dict[str, Fault] = {
    # The codes of the first three are invented: Baidu does not publish its own.
    "capacity": Fault("refuse", status=403, code="Instance.StockNotEnough"),
    "quota": Fault("refuse", status=403, code="Instance.QuotaLimitExceeded"),
    "throttled": Fault("refuse", status=429, code="RateLimit"),
    "auth": Fault("refuse", status=403, code="AccessDenied"),
    "invalid": Fault("refuse", status=400, code="InappropriateJSON"),
    "transient": Fault("refuse", status=500, code="InternalError"),
    "conflict": Fault("refuse", status=403, code="IdempotentParameterMismatch"),
}
"""One refusal of each kind, for any call."""

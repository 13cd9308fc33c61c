"""The codes of reasons for services; docs/services.md says what each means and what to do."""

from __future__ import annotations

from enum import StrEnum


class Why(StrEnum):
    """Stable words: never renamed, never with another meaning."""

    SERVICE_SPIKE = "service_spike"
    SERVICE_CALM = "service_calm"
    LOAN_RECALLED = "loan_recalled"
    LOAN_LIMIT = "loan_limit"
    LOAN_UNKNOWN = "loan_unknown"
    SERVICE_LASTING = "service_lasting"
    SERVICE_ROOM = "service_room"
    SERVICE_UNUSED = "service_unused"
    RENT_LIMIT = "rent_limit"
    RENT_RAMP = "rent_ramp"
    RATE_UNKNOWN = "rate_unknown"
    BACKLOG_UNKNOWN = "backlog_unknown"

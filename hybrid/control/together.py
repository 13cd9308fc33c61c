"""Several calls at once: a cloud answers in seconds, and a plan may need a hundred answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Together(Protocol):
    """Makes calls that do not depend on each other."""

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """Return the answers in the order of the calls, when all have ended.

        What a call raises is raised here once all have ended; the answers of the others are
        then lost, so calls return the errors that are expected of them.
        """
        ...


def in_turn(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """Make one call after the other: the same in every run, for tests and simulations."""
    return [call() for call in calls]


class AtOnce:
    """Makes calls in threads of their own, which end with the last answer.

    Args:
        limit: Calls under way at a time.
    """

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """See `Together`."""
        if len(calls) <= 1:
            return in_turn(calls)
        workers = min(self._limit, len(calls))
        with ThreadPoolExecutor(workers, thread_name_prefix="cloud-call") as pool:
            futures = [pool.submit(call) for call in calls]
        return [future.result() for future in futures]

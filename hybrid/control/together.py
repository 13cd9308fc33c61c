"""Several calls at once: a cloud answers in seconds, and a plan may need a hundred answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Together(Protocol):
    """Makes calls that do not depend on each other."""

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> Iterator[tuple[int, _T]]:
        """Yield the number of each call with its answer, as the answers come.

        What a call raises is raised here after the last answer, so calls return the errors that
        are expected of them.
        """
        ...


def in_turn(calls: Sequence[Callable[[], _T]]) -> Iterator[tuple[int, _T]]:
    """Make one call after the other: the same in every run, for tests and simulations."""
    for number, call in enumerate(calls):
        yield number, call()


class AtOnce:
    """Makes calls in threads of their own, which end with the last answer.

    Args:
        limit: Calls under way at a time.
    """

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> Iterator[tuple[int, _T]]:
        """See `Together`."""
        if len(calls) <= 1:
            yield from in_turn(calls)
            return
        failure: BaseException | None = None
        workers = min(self._limit, len(calls))
        with ThreadPoolExecutor(workers, thread_name_prefix="cloud-call") as pool:
            numbers = {pool.submit(call): number for number, call in enumerate(calls)}
            for done in as_completed(numbers):
                error = done.exception()
                if error is None:
                    yield numbers[done], done.result()
                failure = failure or error
        if failure is not None:
            raise failure

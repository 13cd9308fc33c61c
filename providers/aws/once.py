"""Answers that many threads want at once, and that one of them asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Once(Generic[_K, _V]):
    """Remembers the answer to each question. Thread-safe.

    While one thread asks, those with the same question wait, and get its answer or its failure:
    a hundred launches ask AWS once. A failure is not remembered.
    """

    def __init__(self) -> None:
        self._answers: dict[_K, Future[_V]] = {}
        self._lock = threading.Lock()

    def get(self, question: _K, ask: Callable[[], _V]) -> _V:
        """Return the answer to `question`, which `ask` brings when nobody has it. Raises as it."""
        mine: Future[_V] = Future()
        with self._lock:
            known = self._answers.setdefault(question, mine)
        if known is not mine:
            return known.result()
        try:
            answer = ask()
        except BaseException as error:
            with self._lock:
                del self._answers[question]
            mine.set_exception(error)
            raise
        mine.set_result(answer)
        return answer

    def forget(self, question: _K) -> None:
        """Ask anew the next time. What somebody asks for at this moment is new enough."""
        with self._lock:
            known = self._answers.get(question)
            if known is not None and known.done():
                del self._answers[question]

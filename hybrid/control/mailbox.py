"""Requests to the loop from other threads, carried out between two ticks by the loop's thread."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, TypeVar

from hybrid.control import log
from hybrid.core.errors import ClusterError, HybridError

_log = log.get(__name__)
_T = TypeVar("_T")

ANSWER_S = 22.0
"""How long a request waits for the loop. Its sentence must reach the asker: less than the 30 s of
`hybrid.client.http.READ_S`, with `LAST_S` and the way to and fro."""
LAST_S = 3.0
"""How much longer one that has begun is waited for."""


class Mailbox:
    """A queue of calls, and the bell that ends the loop's pause.

    The bell is rung by signal handlers, too, which run in the loop's own thread at any moment: a
    `threading.Event` would wait there for a lock that this very thread holds. `SimpleQueue.put`
    is made for that.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """End the loop's pause, so that a tick starts at once; safe in a signal handler."""
        self._bell.put(None)

    def wait(self, timeout_s: float) -> None:
        """Pause the loop until the bell rings, at most `timeout_s`."""
        with suppress(queue.Empty):
            self._bell.get(timeout=timeout_s)
            while True:  # however often it rang, one tick answers
                self._bell.get_nowait()

    def ask(self, call: Callable[[], _T], *, timeout_s: float = ANSWER_S) -> _T:
        """Have the loop's thread run `call`; return its result.

        A call that the loop has not begun when its asker leaves is never run: whoever asks again
        would have it done twice.

        Raises:
            HybridError: What `call` raised.
            ClusterError: The loop did not come to it, or did not finish it, in time.
        """
        answer: Future[_T] = Future()
        self._calls.put((call, answer))
        self.ring()
        try:
            return answer.result(timeout_s)
        except FutureTimeoutError as error:
            if answer.cancel():
                raise ClusterError(
                    f"the controller's loop has been busy for {timeout_s:.0f} s and did not come "
                    f"to this: nothing was done. See `hybrid events`, then ask again"
                ) from error
        try:
            return answer.result(LAST_S)  # it has begun; an answer is worth a moment more
        except FutureTimeoutError as error:
            raise ClusterError(
                f"this is being done and takes longer than {timeout_s + LAST_S:.0f} s; see `hybrid "
                f"status` and `hybrid events` before you ask again"
            ) from error

    def serve(self) -> None:
        """Run every call that waits; the loop calls this between ticks.

        A call that hits a bug fails whoever asked, and nobody else.
        """
        while True:
            try:
                call, answer = self._calls.get_nowait()
            except queue.Empty:
                return
            if not answer.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                answer.set_result(call())
            except HybridError as error:
                answer.set_exception(error)
            except Exception as error:  # noqa: BLE001 - any bug, of any part
                _log.exception("request_failed")
                answer.set_exception(error)
            except BaseException as error:
                # The end of the process: whoever waits must not wait in vain.
                answer.set_exception(error)
                raise

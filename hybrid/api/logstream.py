"""Streams a job's output: one thread pulls it, the event loop sends it, either side may end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hybrid.core.errors import HybridError

log = structlog.get_logger(__name__)

_STREAM_LIMIT = 64
_QUEUE_LENGTH = 64
_FIRST_PIECE_S = 0.5

_End = HybridError | None
"""Last thing in a queue: why the output broke, or `None` when it simply ended."""


class LogStreams:
    """Counts the streams of one server, so that readers cannot use up its threads."""

    def __init__(self, limit: int = _STREAM_LIMIT) -> None:
        self._limit = limit
        self._open_count = 0

    async def open(self, subject: str, source: Callable[[], Iterator[str]]) -> LogStream:
        """Start to read `source`; an error before its first piece is raised here.

        Args:
            subject: What is read, for the log.
            source: Called in the stream's own thread.

        Raises:
            HybridError: Too many streams are open, or the output cannot be read.
        """
        if self._open_count >= self._limit:
            raise HybridError(
                f"{self._limit} log streams are open already; close one, or read without follow"
            )
        self._open_count += 1
        stream = LogStream(subject, source, on_close=self._closed)
        try:
            await stream.start()
        except BaseException:
            stream.close()
            raise
        return stream

    def _closed(self) -> None:
        self._open_count -= 1


class LogStream(Response):
    """An HTTP answer that is sent as the output comes.

    An own class, because the reader's going away must be noticed while nothing comes.
    """

    media_type = "text/plain"

    def __init__(
        self, subject: str, source: Callable[[], Iterator[str]], *, on_close: Callable[[], None]
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._subject = subject
        self._source = source
        self._on_close = on_close
        self._queue: asyncio.Queue[str | _End] = asyncio.Queue(_QUEUE_LENGTH)
        self._loop = asyncio.get_running_loop()
        self._is_closed = threading.Event()
        self._first: str = ""

    async def start(self) -> None:
        """Begin to read; waits a moment for an early error, so that it gets a status code.

        Raises:
            HybridError: The output cannot be read.
        """
        threading.Thread(target=self._pump, name=f"logs-{self._subject}", daemon=True).start()
        try:
            piece = await asyncio.wait_for(self._queue.get(), _FIRST_PIECE_S)
        except TimeoutError:
            return
        if isinstance(piece, HybridError):
            raise piece
        if piece is None:
            self._queue.put_nowait(None)
        else:
            self._first = piece

    def close(self) -> None:
        """Stop reading. The thread ends with the next piece; it holds nothing up."""
        if self._is_closed.is_set():
            return
        self._is_closed.set()
        while not self._queue.empty():  # wakes a thread that waits for room
            self._queue.get_nowait()
        self._on_close()

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the output ends, breaks, or nobody reads any more."""
        gone = asyncio.ensure_future(_gone(receive))
        try:
            head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(head)
            await self._send_pieces(send, gone)
        finally:
            gone.cancel()
            self.close()

    async def _send_pieces(self, send: Send, gone: asyncio.Future[None]) -> None:
        piece: str | _End = self._first
        while isinstance(piece, str):
            if piece:  # "" only says that the source is alive
                body = piece.encode("utf-8", "replace")
                await send({"type": "http.response.body", "body": body, "more_body": True})
            coming = asyncio.ensure_future(self._queue.get())
            both: list[asyncio.Future[Any]] = [coming, gone]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                coming.cancel()
                return
            piece = coming.result()
        if piece is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            # no last chunk: the reader must see that this is not the end of the output
            log.warning("log_stream_broke", job_id=self._subject, problem=str(piece))

    def _pump(self) -> None:
        end: _End = HybridError("reading the output hit a bug; see controller.log")
        pieces = None
        try:
            pieces = self._source()
            for piece in pieces:
                if not self._put(piece):
                    return
            end = None
        except HybridError as error:
            end = error
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
            self._put(end)

    def _put(self, piece: str | _End) -> bool:
        """Hand one piece to the event loop, waiting for room; `False` when it is over."""
        if self._is_closed.is_set():
            return False
        handing = self._queue.put(piece)
        try:
            asyncio.run_coroutine_threadsafe(handing, self._loop).result()
        except RuntimeError:  # the server's loop has ended
            handing.close()
            return False
        return True


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

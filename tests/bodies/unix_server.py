"""A server on a Unix socket in a body's folder, on a thread of its own."""

from __future__ import annotations

import socketserver
import threading
from pathlib import Path


class UnixServer(socketserver.ThreadingUnixStreamServer):
    """Serves from its making until it is closed.

    Args:
        path: The socket.
        handler: Answers one connection.
    """

    daemon_threads = True

    def __init__(self, path: Path, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(str(path), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """A body that died in the middle of a call is no news."""

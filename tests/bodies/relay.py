"""A way out of a body to one port of this machine's loopback: to its cloud's API.

As the metadata service it is a Unix socket in the body's folder; inside the body process 1 listens
on the same port of its own loopback.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from pathlib import Path


class Relay:
    """Passes connections on until it is closed."""

    def __init__(self, path: Path, port: int) -> None:
        self._server = _Server(str(path), _Handler)
        self._server.port = port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    port = 0

    def handle_error(self, *_: object) -> None:
        """A body that died in the middle of a call is no news."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            back = threading.Thread(target=_pump, args=(there, self.request))
            back.start()
            _pump(self.request, there)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(65_536):
            sink.sendall(content)
        sink.shutdown(socket.SHUT_WR)

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

from tests.bodies.unix_server import UnixServer


class Relay(UnixServer):
    """Passes connections on until it is closed."""

    def __init__(self, path: Path, port: int) -> None:
        self.port = port
        super().__init__(path, _Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: Relay

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

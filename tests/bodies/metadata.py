"""The metadata service as one body sees it, answered by the cloud's emulator.

It listens on a Unix socket in the body's folder, which passes between network namespaces; inside
the body process 1 listens on 169.254.169.254 and passes every connection on to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.bodies.unix_server import UnixServer


@dataclass(frozen=True)
class Ask:
    """A question to the metadata service.

    Attributes:
        headers: By their names in lower case.
    """

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Told:
    """Its answer."""

    status: int
    body: bytes = b""


Answers = Callable[[Ask], Told]


class MetadataServer(UnixServer):
    """Answers until it is closed."""

    def __init__(self, path: Path, answers: Answers) -> None:
        self.answers = answers
        super().__init__(path, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: MetadataServer

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        told = self.server.answers(Ask(self.command, self.path, headers))
        with contextlib.suppress(OSError):
            self.send_response(told.status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            self.wfile.write(told.body)

    do_GET = do_PUT = do_POST = _serve  # noqa: N815  # http.server's names

    def address_string(self) -> str:
        return "a body"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

"""The part of the controller that a node talks to, on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class FakeController:
    """Answers join requests; the last of `replies` again and again.

    Attributes:
        replies: Status and JSON body, in order.
        reports: What nodes reported: phase and problem.
        reporters: Who did: id and token.
        report_status: Of every answer to a report.
        is_silent: Take requests and say nothing.
    """

    def __init__(self, ray_token: str = "ray-token") -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.replies: list[tuple[int, object]] = [(200, {"ray_token": ray_token})]
        self.reports: list[tuple[str, str]] = []
        self.reporters: set[tuple[str, str]] = set()
        self.report_status = 200
        self.is_silent = False
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str, body: dict[str, str]) -> tuple[int, object]:
        if path == "/api/v1/join/report":
            self.reporters.add((body["instance_id"], body["join_token"]))
            self.reports.append((body["phase"], body["problem"]))
            return self.report_status, {}
        self.requests.append((path, body))
        if len(self.replies) > 1 and not self.is_silent:
            return self.replies.pop(0)
        return self.replies[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        controller = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, content = controller._answer(self.path, json.loads(body))
                if controller.is_silent:
                    controller._closing.wait(30)
                    return
                answer = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.send_header("Location", controller.url + "/elsewhere")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

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
        is_silent: Take requests and say nothing.
    """

    def __init__(self, ray_token: str = "ray-token") -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.replies: list[tuple[int, object]] = [(200, {"ray_token": ray_token})]
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

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        controller = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                controller.requests.append((self.path, json.loads(body)))
                if controller.is_silent:
                    controller._closing.wait(30)
                    return
                status, content = controller.replies[0]
                if len(controller.replies) > 1:
                    controller.replies.pop(0)
                answer = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.send_header("Location", controller.url + "/elsewhere")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

"""A server of pages, as nodes of Ray and Prometheus have them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BOUNDS = ("10.0", "100.0", "1000.0", "+Inf")


@dataclass
class Asked:
    """One request that came."""

    query: str
    headers: Mapping[str, str]


@dataclass
class Pages:
    """What is served, changed by a test at any time.

    Attributes:
        answer: Makes the status and the body of the next answer from the query.
        delay_s: Between two bytes of each answer.
    """

    url: str = ""
    answer: Callable[[str], tuple[int, str]] = lambda _query: (200, "")
    delay_s: float = 0.0
    asked: list[Asked] = field(default_factory=list)

    def says(self, body: str, status: int = 200) -> None:
        """Answer with this from now on."""
        self.answer = lambda _query: (status, body)


@contextmanager
def serving() -> Iterator[Pages]:
    """Serve pages on a free port of this machine."""
    pages = Pages()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            pages.asked.append(Asked(query, dict(self.headers)))
            status, body = pages.answer(query)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            for byte in body.encode() if pages.delay_s else [body.encode()]:
                try:
                    self.wfile.write(bytes([byte]) if isinstance(byte, int) else byte)
                    self.wfile.flush()
                except OSError:
                    return
                time.sleep(pages.delay_s)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    pages.url = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        yield pages
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def histogram(
    *counts: float, app: str = "chat", worker: str = "w1", status: str = "200", name: str = ""
) -> str:
    """Return a histogram as a proxy of Serve tells it: counts at or below 10, 100, 1000 ms, all."""
    name = name or "ray_serve_http_request_latency_ms"
    labels = (
        f'Component="core_worker",WorkerId="{worker}",application="{app}",method="GET",'
        f'deployment="Model",route="/",status_code="{status}"'
    )
    lines = [
        f'{name}_bucket{{{labels},le="{bound}"}} {count}'
        for bound, count in zip(BOUNDS, counts, strict=True)
    ]
    return "\n".join([*lines, f"{name}_count{{{labels}}} {counts[-1]}", ""])


def gauges(
    *, replicas: int, target: int, queued: float, ongoing: float, deployment: str = "Model"
) -> str:
    """Return what Serve tells of a deployment's load."""
    labels = f'application="chat",deployment="{deployment}"'
    lines = [
        f'ray_serve_deployment_replica_healthy{{{labels},replica="{n}"}} 1.0'
        for n in range(replicas)
    ]
    lines += [
        f"ray_serve_autoscaling_target_replicas{{{labels}}} {target}.0",
        f'ray_serve_deployment_queued_queries{{{labels},handle="h"}} {queued}',
        f'ray_serve_num_ongoing_requests_at_replicas{{{labels},handle="h"}} {ongoing}',
        "",
    ]
    return "\n".join(lines)

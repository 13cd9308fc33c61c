"""The emulator's HTTP: checks each request's signature, then does what the API does."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from tests.emulators.baidu.cloud import Cloud
from tests.emulators.baidu.faults import REFUSALS, Fault, next_fault
from tests.emulators.baidu.signature import Secret, Signed, verify
from tests.emulators.baidu.wire import ApiError, no_such_object

ACCESS_KEY = "ALTAKemulated"
SECRET_KEY = "0123456789abcdef0123456789abcdef"

_INSTANCE = re.compile(r"/v2/instance/([A-Za-z0-9-]+)")
_CONTROL = "/_emulator/"
_USAGE = """\
Point the adapter at it (region bj):

    export BAIDUCLOUD_ACCESS_KEY={access_key} BAIDUCLOUD_SECRET_KEY={secret_key}

    providers:
      baidu:
        image: m-gpu1
        endpoints: {{bj: "{url}"}}

Images m-gpu1 and m-gpu2; subnets sbn-a and sbn-d; types bcc.lgn1.c12m40.1p40, ...

Make it misbehave:

    curl {url}/_emulator/faults -d '{{"what": "refuse", "code": "RateLimit", "status": 429,
                                     "call": "POST /v2/instanceBySpec", "times": 2}}'
    (what: refuse html empty garbage drop lose fail_late slow)
    curl {url}/_emulator/set -d '{{"stock": {{"bcc.lgn1.c12m40.1p40": 0}}, "quota": 0, "boot_s": 60,
                                  "list_lag_s": 30, "ahead_s": 3600}}'
    curl {url}/_emulator/interrupt -d '{{"id": "i-..."}}'     (also stop, delete_by_hand,
                                                            recycle_by_hand)
    curl {url}/_emulator/requests                       what was asked so far"""


@dataclass(frozen=True)
class Request:
    """One request that was signed well."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class BaiduEmulator:
    """See `tests.emulators.Emulator`. Its parts may be changed while it runs.

    Attributes:
        cloud: The account.
        faults: What goes wrong next.
        secrets: The access keys that exist.
        requests: What was asked, the oldest first.
        clock_ahead_s: How far the clock that judges signatures is ahead of this machine's.
        watch: Called after each request, before its answer leaves, while nothing can change.
    """

    port: int = 0
    cloud: Cloud = field(default_factory=Cloud)
    faults: list[Fault] = field(default_factory=list)
    secrets: dict[str, Secret] = field(default_factory=lambda: {ACCESS_KEY: Secret(SECRET_KEY)})
    requests: list[Request] = field(default_factory=list)
    clock_ahead_s: float = 0.0
    watch: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.emulator = self
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def usage(self) -> str:
        return _USAGE.format(url=self.url, access_key=ACCESS_KEY, secret_key=SECRET_KEY)

    def refuse(self, kind: str, *, call: str = "POST /v2/instanceBySpec", times: int = 1) -> None:
        """Refuse the next calls; kinds are those of `REFUSALS`."""
        fault = asdict(REFUSALS[kind]) | {"call": re.escape(call), "times": times}
        self.faults.append(Fault(**fault))

    def calls(self, pattern: str) -> list[Request]:
        """Return the requests whose "METHOD /path" fits a pattern."""
        return [r for r in self.requests if re.fullmatch(pattern, f"{r.method} {r.path}")]

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    # --- one request ------------------------------------------------------------------------

    def answer(self, signed: Signed, body: bytes) -> Answer:
        """Return the answer to a request."""
        path, _, raw_query = signed.uri.partition("?")
        query = dict(parse_qsl(raw_query, keep_blank_values=True))
        try:
            if path.startswith(_CONTROL):
                return Answer(200, self._control(path.removeprefix(_CONTROL), body))
            verify(signed, self.secrets, now_s=time.time() + self.clock_ahead_s)
            content = json.loads(body) if body else {}
            with self.lock:
                self.requests.append(
                    Request(signed.method, path, query, content, dict(signed.headers))
                )
                fault = next_fault(self.faults, f"{signed.method} {signed.uri}")
            return self._answer(signed.method, path, query, content, fault)
        except ApiError as err:
            return _refusal(err)

    def _answer(
        self, method: str, path: str, query: Mapping[str, str], body: Any, fault: Fault | None
    ) -> Answer:
        if fault is not None:
            time.sleep(fault.delay_s)
            match fault.what:
                case "refuse":
                    raise ApiError(fault.status, fault.code, fault.message)
                case "html":
                    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
                    return Answer(fault.status, page, kind="text/html")
                case "empty":
                    return Answer(fault.status, b"")
                case "garbage":
                    return Answer(200, b'{"instances": [{"id": "i-1')
                case "drop":
                    return Answer(is_lost=True)
                case "lose" | "fail_late" | "slow":
                    pass
        with self.lock:
            try:
                done = self._route(method, path, query, body)
            finally:
                self.watch()
        if fault is not None and fault.what == "lose":
            return Answer(is_lost=True)
        if fault is not None and fault.what == "fail_late":
            raise ApiError(fault.status, fault.code, fault.message)
        return Answer(200, b"" if done is None else done)

    def _route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Any:
        if (method, path) == ("POST", "/v2/instanceBySpec"):
            return self.cloud.create(query, body)
        if (method, path) == ("GET", "/v2/instance"):
            return self.cloud.list(query)
        match = _INSTANCE.fullmatch(path)
        if match is not None and method == "GET":
            return self.cloud.get(match[1])
        if match is not None and method == "PUT" and "autorelease" in query:
            return self.cloud.set_expiry(match[1], body)
        if match is not None and method == "POST":
            return self.cloud.release(match[1], body)
        raise no_such_object()

    def _control(self, verb: str, body: bytes) -> Any:
        facts = json.loads(body) if body else {}
        with self.lock:
            match verb:
                case "faults":
                    self.faults.append(Fault(**facts))
                case "set":
                    for name, value in facts.items():
                        getattr(self.cloud, name)  # a slip of the pen is an error
                        setattr(self.cloud, name, value)
                case "interrupt" | "stop" | "delete_by_hand" | "recycle_by_hand":
                    getattr(self.cloud, verb)(facts["id"])
                case "requests":
                    return {"requests": [asdict(request) for request in self.requests]}
                case _:
                    raise no_such_object()
        return {}


@dataclass(frozen=True)
class Answer:
    """What goes back; `is_lost` ends the connection without a word."""

    status: int = 200
    content: Any = b""
    kind: str = "application/json;charset=UTF-8"
    is_lost: bool = False


def _refusal(err: ApiError) -> Answer:
    request_id = str(uuid.uuid4())
    content = {"requestId": request_id, "code": err.code, "message": err.message}
    return Answer(err.status, content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    emulator: BaiduEmulator

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        # `self.path` is the raw request line: what was signed, not a decoded copy.
        answer = self.server.emulator.answer(Signed(self.command, self.path, headers), body)
        if answer.is_lost:
            self.close_connection = True
            return
        content = answer.content
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        with contextlib.suppress(ConnectionError):
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("x-bce-request-id", str(uuid.uuid4()))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  # http.server's names

    def log_message(self, *args: Any) -> None:
        """Requests are kept in a list instead."""

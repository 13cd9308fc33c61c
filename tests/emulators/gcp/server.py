"""The wire: requests are checked, answered and recorded as the Compute Engine API does it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tests.emulators.gcp.answers import ApiError
from tests.emulators.gcp.auth import ServiceAccount, TokenError
from tests.emulators.gcp.bulk import bulk_insert
from tests.emulators.gcp.cloud import Cloud, Json, Key
from tests.emulators.gcp.discovery import Call, document
from tests.emulators.gcp.faults import Fault, Faults
from tests.emulators.gcp.filters import FilterError, matches
from tests.emulators.gcp.nodes import NodeAccounts
from tests.emulators.gcp.permissions import needed
from tests.emulators.gcp.rules import ZONES

_Answer: TypeAlias = Json
_LONGEST_WAIT_S = 120.0
_LARGEST_PAGE = 500
_PAGE = (
    "<!DOCTYPE html><html><title>Error 502 (Server Error)!!1</title><p>The server encountered a "
    "temporary error and could not complete your request."
)


@dataclass
class Record:
    """One request, as it came."""

    method: str
    verb: str
    path: str
    query: Json
    body: Any
    status: int = 0


@dataclass
class Api:
    """The API of the emulated cloud, as a WSGI application.

    Attributes:
        violations: Requests and answers that do not fit Google's description of the API.
        log: Every request.
        granted: IAM permissions of the caller; `None` grants everything.
        nodes: Those of machines that call with a token of their metadata server.
        needs_token: Whether requests without a valid token are refused.
        wait_s: How long an operation is waited for at most; Google's is 2 minutes.
        page_size: Lists have at most so many instances on a page.
        partial: Zones that lists leave out, with a warning.
        watch: Called after each request, before its answer leaves, while nothing can change.
    """

    account: ServiceAccount
    cloud: Cloud = field(default_factory=Cloud)
    faults: Faults = field(default_factory=Faults)
    violations: list[str] = field(default_factory=list)
    log: list[Record] = field(default_factory=list)
    granted: set[str] | None = None
    nodes: NodeAccounts = field(default_factory=NodeAccounts)
    needs_token: bool = True
    wait_s: float = _LONGEST_WAIT_S
    page_size: int = _LARGEST_PAGE
    partial: set[str] = field(default_factory=set)
    watch: Callable[[], None] = lambda: None

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request = Request(environ)
        if request.path.startswith("/_control/"):
            response = self._controlled(request)
        else:
            response = self._answered(request, environ)
        with self.cloud.lock:
            self.watch()
        return response(environ, start_response)

    # --- one request ----------------------------------------------------------------------

    def _answered(self, request: Request, environ: dict[str, Any]) -> Response:
        call = document().find(request.method, request.path)
        body = json.loads(request.get_data() or b"null")
        name = call.name if call else "unknown"
        record = Record(name, request.method, request.path, dict(request.args), body)
        self.log.append(record)
        zone = call.path.get("zone", "") if call else ""
        fault = self.faults.take(name, zone, of_operation=False) or Fault(times=0)
        time.sleep(fault.delay_s)
        try:
            call = self._checked(call, request, body)
            if fault.is_after:
                self._do(call, request, body)
            if error := fault.error():
                raise error
            answer = {} if fault.is_after else self._do(call, request, body)
            self._check_answer(call, answer, is_real=not fault.is_after)
            response = Response(json.dumps(answer), 200, content_type="application/json")
        except ApiError as err:
            response = Response(json.dumps(err.body()), err.status, content_type="application/json")
        record.status = response.status_code
        if fault.is_html:
            response = Response(_PAGE, fault.status or 200, content_type="text/html")
        if fault.is_dropped:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return response

    def _checked(self, call: Call | None, request: Request, body: object) -> Call:
        if call is None:
            self.violations.append(f"{request.method} {request.path}: no such method")
            raise ApiError(404, "Method not found.")
        node = self._check_token(request)
        query = dict(request.args)
        problems = document().problems_of_parameters(call, query)
        problems += document().problems_of_request(call, body)
        if problems:
            self.violations += [f"{call.name}: {problem}" for problem in problems]
            raise ApiError(400, f"Invalid JSON payload received. {problems[0]}")
        project = call.path.get("project", "")
        if project != self.account.project:
            raise ApiError(404, f"The resource 'projects/{project}' was not found")
        for permission in needed(call, body):
            is_granted = self.granted is None or permission in self.granted
            if not (self.nodes.allows(node, permission, call) if node else is_granted):
                where = request.path.partition("/compute/v1/")[2]
                raise ApiError(403, f"Required '{permission}' permission for '{where}'")
        return call

    def _check_token(self, request: Request) -> str:
        """Return the account of the machine that asks; `""` when a person or program does."""
        if not self.needs_token:
            return ""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind != "Bearer" or not token:
            raise ApiError(401, "Login Required.", "required")
        if node := self.nodes.email_of(token):
            return node
        try:
            self.account.check(token, now_s=self.cloud.now_s())
        except TokenError as err:
            text = "Request had invalid authentication credentials. Expected OAuth 2 access token."
            raise ApiError(401, text, "authError") from err
        return ""

    def _check_answer(self, call: Call, answer: _Answer, *, is_real: bool) -> None:
        problems = document().problems_of_answer(call, answer) if is_real else []
        self.violations += [f"answer to {call.name}: {problem}" for problem in problems]

    # --- methods --------------------------------------------------------------------------

    def _do(self, call: Call, request: Request, body: Any) -> _Answer:
        do = {
            "instances.insert": self._insert,
            "instances.bulkInsert": self._bulk_insert,
            "instances.get": self._get,
            "instances.delete": self._delete,
            "instances.stop": self._stop,
            "instances.setMetadata": self._set_metadata,
            "instances.aggregatedList": self._aggregated_list,
            "zoneOperations.get": self._operation,
            "zoneOperations.wait": self._wait,
        }.get(call.name)
        if do is None:
            raise ApiError(501, f"the emulator does not have {call.name}")
        with self.cloud.lock:
            self.cloud.settle()
        return do(call, request, body)

    def _base(self, call: Call, request: Request) -> str:
        return f"http://{request.host}/compute/v1/projects/{call.path['project']}"

    def _fault(self, call: Call) -> Fault | None:
        return self.faults.take(call.name, call.path["zone"], of_operation=True)

    def _insert(self, call: Call, request: Request, body: Any) -> _Answer:
        return self._created(self.cloud.insert, call, request, body)

    def _bulk_insert(self, call: Call, request: Request, body: Any) -> _Answer:
        return self._created(partial(bulk_insert, self.cloud), call, request, body)

    def _created(
        self, create: Callable[..., Json], call: Call, request: Request, body: Any
    ) -> _Answer:
        base, request_id = self._base(call, request), request.args.get("requestId", "")
        with self.cloud.lock:
            zone = call.path["zone"]
            return dict(create(base, zone, body, request_id, lambda: self._fault(call)))

    def _get(self, call: Call, _request: Request, _body: Any) -> _Answer:
        with self.cloud.lock:
            return dict(self.cloud.get(_key(call)))

    def _delete(self, call: Call, _request: Request, _body: Any) -> _Answer:
        with self.cloud.lock:
            return dict(self.cloud.delete(_key(call), self._fault(call)))

    def _stop(self, call: Call, _request: Request, _body: Any) -> _Answer:
        with self.cloud.lock:
            return dict(self.cloud.stop(_key(call)))

    def _set_metadata(self, call: Call, _request: Request, body: Any) -> _Answer:
        with self.cloud.lock:
            return dict(self.cloud.set_metadata(_key(call), body, self._fault(call)))

    def _operation(self, call: Call, _request: Request, _body: Any) -> _Answer:
        with self.cloud.lock:
            return dict(self.cloud.operations.find(call.path["operation"]).resource)

    def _wait(self, call: Call, _request: Request, _body: Any) -> _Answer:
        end_s = time.monotonic() + self.wait_s
        while True:
            with self.cloud.lock:
                self.cloud.settle()
                operation = self.cloud.operations.find(call.path["operation"])
                if operation.is_done or time.monotonic() >= end_s:
                    return dict(operation.resource)
            time.sleep(0.005)

    def _aggregated_list(self, call: Call, request: Request, _body: Any) -> _Answer:
        project, query = call.path["project"], request.args
        if self.cloud.unreachable and query.get("returnPartialSuccess") != "true":
            zone = min(self.cloud.unreachable)
            raise ApiError(503, f"The zone '{zone}' cannot be reached.", "backendError")
        with self.cloud.lock:
            try:
                found = [
                    (zone, instance)
                    for zone, instance in self.cloud.listed(project)
                    if matches(query.get("filter", ""), instance)
                ]
            except FilterError as err:
                raise ApiError(400, f"Invalid value for field 'filter': {err}") from err
        first = int(query.get("pageToken") or 0)
        size = min(self.page_size, int(query.get("maxResults") or _LARGEST_PAGE))
        answer: _Answer = {
            "kind": "compute#instanceAggregatedList",
            "id": f"projects/{project}/aggregated/instances",
            "items": {f"zones/{zone}": _empty_scope(zone) for zone in ZONES},
            "selfLink": request.base_url,
        }
        for zone, instance in found[first : first + size]:
            scope = answer["items"][f"zones/{zone}"]
            scope.pop("warning", None)
            scope.setdefault("instances", []).append(instance)
        for zone in self.partial:
            warning = {"code": "UNREACHABLE", "message": f"Zone {zone} is unreachable."}
            answer["items"][f"zones/{zone}"] = {"warning": warning}
        if first + size < len(found):
            answer["nextPageToken"] = str(first + size)
        return json.loads(json.dumps(answer))  # type: ignore[no-any-return]  # a copy

    # --- control --------------------------------------------------------------------------

    def _controlled(self, request: Request) -> Response:
        """Obey `POST /_control/fault`, `/_control/cloud`, `GET /_control/log`, ..."""
        what = request.path.removeprefix("/_control/")
        facts = json.loads(request.get_data() or b"{}")
        try:
            answer = self._control(what, facts)
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            return Response(json.dumps({"error": str(err)}), 400, content_type="application/json")
        return Response(json.dumps(answer), 200, content_type="application/json")

    def _control(self, what: str, facts: Json) -> Json:
        if what == "fault":
            self.faults.add(**facts)
        elif what == "capacity":
            self.cloud.capacity[facts["zone"], facts["type"]] = int(facts["count"])
        elif what == "quota":
            self.cloud.quotas[facts["region"], facts["metric"]] = int(facts["limit"])
        elif what == "cloud":
            for name, value in facts.items():
                if not isinstance(getattr(self.cloud, name), int | float | bool):
                    raise TypeError(f"{name} is not a number")
                setattr(self.cloud, name, value)
        elif what == "preempt":
            with self.cloud.lock:
                zone, name = facts["zone"], facts["name"]
                self.cloud.preempt((self.account.project, zone, name))
        elif what == "log":
            return {"log": [vars(record) for record in self.log], "violations": self.violations}
        else:
            raise KeyError(what)
        return {}


def _key(call: Call) -> Key:
    return call.path["project"], call.path["zone"], call.path["instance"]


def _empty_scope(zone: str) -> Json:
    where = f"zones/{zone}"
    text = f"There are no results for scope '{where}' on this page."
    data = [{"key": "scope", "value": where}]
    return {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": text, "data": data}}


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as the real server does

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing; requests are in the record."""


class Server:
    """The API on a port of loopback, on threads of its own."""

    def __init__(self, api: Api, port: int) -> None:
        document()  # read before the first request, not during it
        self._server = make_server("127.0.0.1", port, api, threaded=True, request_handler=_Handler)
        # The interval only says how long `stop` may take.
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

"""The emulator: one port of 127.0.0.1 for EC2, SSM, prices, metadata and its own controls."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from tests.emulators.aws import imds
from tests.emulators.aws.backend import Moto
from tests.emulators.aws.controls import ACCESS_KEY, IMAGE, SECRET_KEY, Call, Controls
from tests.emulators.aws.describing import Describer
from tests.emulators.aws.fleets import FleetMaker
from tests.emulators.aws.imds import Metadata
from tests.emulators.aws.launching import Launcher
from tests.emulators.aws.pricing import PriceList
from tests.emulators.aws.wire import (
    DROPPED,
    Answer,
    Request,
    error,
    html,
    parse,
    permission_problem,
    signature_problem,
)

CONTROL = "/control/"

_USAGE = """\
Point the adapter at it, in hybrid.yaml:
    providers:
      aws:
        endpoint_url: {url}
        regions:
          us-east-1:
            image: {image}
            subnets: {{us-east-1a: {subnet_a}, us-east-1b: {subnet_b}}}
            security_groups: [{group}]
and in the environment: AWS_ACCESS_KEY_ID={key} AWS_SECRET_ACCESS_KEY={secret}
Instance metadata: {url}/imds/<instance id>/latest/meta-data/...

Make it misbehave: curl -X POST {url}/control/VERB -d JSON
    fail       {{"action": "RunInstances", "code": "RequestLimitExceeded", "times": 3}}
               or "is_dropped", "is_html", "is_after" (the work is done first), "delay_s", "zone"
    set_stock  {{"count": 0, "instance_type": "g5.xlarge", "zone": "us-east-1a"}}
    set        {{"vcpu_limit": 0}}, or hidden_lists, pending_lists, ending_lists, ended_lists,
               page_count, or "price_list": []: no on-demand price is listed
    interrupt  {{"instance_id": "i-...", "notice_s": 120}}: spot notice, then the end
    stop       {{"instance_id": "i-..."}}: as a person does in the console
    fail_late  {{"instance_id": "i-...", "code": "Client.InternalError", "message": "..."}}: it ends
               after it was accepted
    reset      {{}}: forget all of the above, and all instances
    curl {url}/control/calls shows what was asked."""


class _Handler(WSGIRequestHandler):
    """Says nothing, and closes each connection, so that none is left at the end."""

    protocol_version = "HTTP/1.0"

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  # werkzeug's
        """Drop the line."""


class AwsEmulator:
    """A region-rich EC2 on loopback. Controls are `controls`; moto's own state is behind it.

    Attributes:
        watch: Called after each request, before its answer leaves, while nothing can change.
    """

    def __init__(self, port: int = 0) -> None:
        self.watch: Callable[[], None] = lambda: None
        self.moto = Moto()
        self._timers: list[threading.Timer] = []
        self._lock = threading.RLock()
        self._renew()
        # werkzeug would end the process when the port is taken.
        with socket.create_server(("127.0.0.1", port)) as bound:
            self._server = make_server(
                "127.0.0.1",
                port,
                self._serve,
                threaded=True,
                request_handler=_Handler,
                fd=bound.fileno(),
            )
        # Those that still serve are waited for at the end.
        self._server.daemon_threads = False  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="aws", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        self.controls = Controls()
        self.metadata = Metadata(self.moto)
        self._launcher = Launcher(self.moto, self.controls)
        self._fleet_maker = FleetMaker(self.moto, self.controls, self._launcher)
        self._describer = Describer(self.moto, self.controls)

    @property
    def usage(self) -> str:
        """See `Emulator.usage`."""
        return _USAGE.format(
            url=self.url,
            image=IMAGE,
            subnet_a=self.moto.subnet("us-east-1a"),
            subnet_b=self.moto.subnet("us-east-1b"),
            group=self.moto.security_group("us-east-1"),
            key=ACCESS_KEY,
            secret=SECRET_KEY,
        )

    def stop(self) -> None:
        """See `Emulator.stop`."""
        self._forget_timers()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def reset(self) -> None:
        """End all instances and forget everything that was told."""
        self._forget_timers()
        with self._lock:
            for region in ("us-east-1", "us-west-2", "cn-north-1"):
                backend = self.moto.region(region)
                backend.reservations.clear()
                for template_id in list(backend.launch_templates):
                    template = backend.launch_templates.pop(template_id)
                    del backend.launch_template_name_to_ids[template.name]
                    backend.launch_template_insert_order.remove(template_id)
            self._renew()

    def _forget_timers(self) -> None:
        while self._timers:
            self._timers.pop().cancel()

    def interrupt(self, instance_id: str, *, notice_s: float = 120.0) -> None:
        """Tell a spot instance that it will be taken back, and do it when that time is over."""
        self.metadata.notices[instance_id] = time.time() + notice_s
        timer = threading.Timer(notice_s, self.moto.take_back, [instance_id])
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    # --- serving ---------------------------------------------------------------------------

    def _serve(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        answer = self._answer(environ, body)
        with self._lock:
            self.watch()
        if answer is DROPPED:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        start(f"{answer.status} -", [("Content-Type", answer.content_type)])
        return [answer.body]

    def _answer(self, environ: dict[str, Any], body: bytes) -> Answer:
        path = str(environ["PATH_INFO"])
        if path.startswith(CONTROL):
            return self._control(path.removeprefix(CONTROL), body)
        if path.startswith(imds.PREFIX):
            with self._lock:
                return self.metadata.answer(environ)
        request = parse(environ, body)
        with self._lock:
            self.controls.calls.append(
                Call(request.action, request.region, dict(request.params), request.service)
            )
            refusal = signature_problem(
                request,
                self.controls.secrets,
                now_s=time.time() + self.controls.clock_skew_s,
                token=self.controls.session_token,
            )
        # Nobody needs a permission to ask who he is.
        if refusal is None and self.controls.allowed is not None and request.service != "sts":
            refusal = permission_problem(request, self.controls.allowed)
        return refusal or self._faulty(request)

    def _faulty(self, request: Request) -> Answer:
        """Answer, or go wrong as told."""
        zone = request.get("Placement.AvailabilityZone")
        with self._lock:
            fault = self.controls.take_fault(request.action, zone)
        if fault is None:
            with self._lock:
                answer = self._dispatch(request)
                fault = self.controls.take_fault(request.action, zone, is_after=True)
            if fault is None:
                return answer
        time.sleep(fault.delay_s)
        if fault.is_dropped:
            return DROPPED
        if fault.is_html:
            return html(fault.http or 502)
        if fault.code and request.service == "ec2":
            return error(fault.code, fault.message, fault.http)
        if fault.code:
            content = {"__type": fault.code, "message": fault.message}
            kind = "application/x-amz-json-1.1"
            return Answer(fault.http or 400, kind, json.dumps(content).encode())
        with self._lock:
            return self._dispatch(request)

    def _dispatch(self, request: Request) -> Answer:
        doors = {
            "RunInstances": self._launcher.run_instances,
            "CreateFleet": self._fleet_maker.create_fleet,
            "DescribeInstances": self._describer.instances,
            "DescribeImages": self._describer.images,
            "DescribeSpotPriceHistory": self._describer.spot_prices,
            "GetCallerIdentity": self._describer.identity,
            "GetParameter": self._describer.parameter,
            "GetProducts": PriceList(self.controls).products,
            "TerminateInstances": self._terminate,
            "CreateTags": self._known,
        }
        return doors.get(request.action, self.moto.answer)(request)

    def _terminate(self, request: Request) -> Answer:
        for prefix in request.numbered("InstanceId"):
            name = request.get(prefix)
            digits = name.removeprefix("i-")
            if not name.startswith("i-") or not set(digits) <= set("0123456789abcdef"):
                return error("InvalidInstanceID.Malformed", f'Invalid id: "{name}"')
        return self._known(request)

    def _known(self, request: Request) -> Answer:
        prefixes = [*request.numbered("InstanceId"), *request.numbered("ResourceId")]
        asked = {request.get(prefix) for prefix in prefixes}
        if gone := sorted(asked & self.controls.forgotten):
            words = f"The instance IDs '{', '.join(gone)}' do not exist"
            return error("InvalidInstanceID.NotFound", words)
        return self.moto.answer(request)

    # --- controls over HTTP ------------------------------------------------------------------

    def _control(self, verb: str, body: bytes) -> Answer:
        try:
            told = json.loads(body or b"{}")
            with self._lock:
                content = self._obey(verb, told)
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            return Answer(400, "text/plain", f"{type(err).__name__}: {err}\n".encode())
        return Answer(200, "application/json", json.dumps(content).encode())

    def _obey(self, verb: str, told: dict[str, Any]) -> object:
        match verb:
            case "calls":
                return [asdict(call) for call in self.controls.calls]
            case "fail":
                self.controls.fail(**told)
            case "set_stock":
                self.controls.set_stock(**told)
            case "set":
                for name, value in told.items():
                    getattr(self.controls, name)  # refuses unknown names
                    setattr(self.controls, name, value)
            case "interrupt":
                self.interrupt(told["instance_id"], notice_s=float(told.get("notice_s", 120)))
            case "fail_late":
                self.moto.fail_late(**told)
            case "stop":
                self.moto.stop(told["instance_id"])
            case "reset":
                self.reset()
            case _:
                raise ValueError(f"no such verb: {verb}")
        return {}

"""The controller's HTTP API: builds the application, and serves it from a thread."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Sequence

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.responses import Response
from fastapi.security import HTTPBearer

import hybrid
from hybrid.api.bodies import HealthView
from hybrid.api.commanding import job_routes, join_routes, operator_routes, package_routes
from hybrid.api.guard import PACKAGE_LIMIT_BYTES, Guard
from hybrid.api.layering import Layers, layer_routes
from hybrid.api.reading import answer, log_routes, reading_routes
from hybrid.api.refusals import install
from hybrid.control.service import Service
from hybrid.core.errors import ConfigError
from hybrid.node.holders import holder

_PREFIX = "/api/v1"
_START_S = 10.0
_GRACE_S = 1
"""How long open answers (mostly followed logs) may go on when the server stops."""


def make_app(
    service: Service,
    token: str,
    *,
    layers: Layers | None = None,
    nodes_host: str = "",
    package_limit_bytes: int = PACKAGE_LIMIT_BYTES,
) -> FastAPI:
    """Return the API over a controller.

    Args:
        service: The controller; its methods run in worker threads.
        layers: Lets the configuration be changed; `None`: nothing does.
        token: What every caller must present; see `hybrid.api.guard` for the exceptions.
        nodes_host: Address at which nodes, and nobody else, are served; `""` for none.
        package_limit_bytes: Largest working directory that is taken.
    """
    # no docs pages: they load scripts from a foreign server
    app = FastAPI(title="hybrid", version=hybrid.__version__, docs_url=None, redoc_url=None)
    app.add_middleware(
        Guard, token=token, nodes_host=nodes_host, package_limit_bytes=package_limit_bytes
    )
    install(app)

    @app.get("/healthz", response_model=HealthView, tags=["health"])
    def healthz() -> Response:
        """How the controller is; needs no token and says nothing about the cluster."""
        controller = service.status().controller
        return answer(HealthView(state=controller.state, phase=controller.phase))

    shown = [Depends(HTTPBearer(auto_error=False))]  # for OpenAPI; Guard does the check
    for build in (reading_routes, log_routes, job_routes, package_routes, operator_routes):
        app.include_router(build(service), prefix=_PREFIX, dependencies=shown)
    if layers is not None:
        app.include_router(layer_routes(layers), prefix=_PREFIX, dependencies=shown)
    app.include_router(join_routes(service), prefix=_PREFIX)
    return app


class ApiServer:
    """A running server.

    Attributes:
        url: Where this machine reaches it.
    """

    def __init__(
        self, server: uvicorn.Server, listeners: Sequence[socket.socket], url: str
    ) -> None:
        self.url = url
        self._server = server
        self._listeners = listeners
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": list(listeners)}, name="api", daemon=True
        )

    def start(self) -> None:
        """Serve from a thread of its own.

        The socket listens already, so requests sent from now on are answered.
        """
        self._thread.start()

    def stop(self) -> None:
        """Stop: no new requests, open ones get a moment. Idempotent."""
        self._server.should_exit = True
        self._thread.join(timeout=_GRACE_S + _START_S)
        for listener in self._listeners:
            listener.close()


def serve(app: FastAPI, host: str, port: int, *, nodes_host: str = "") -> ApiServer:
    """Serve `app` and return at once.

    Args:
        app: From `make_app`.
        host: Address to listen on.
        port: 0 for a free one.
        nodes_host: A second address, for nodes, on the same port.

    Raises:
        ConfigError: An address cannot be listened on.
    """
    listeners = [_listen(host, port)]
    bound = listeners[0].getsockname()[1]
    if nodes_host:
        listeners.append(_listen(nodes_host, bound))
    config = uvicorn.Config(
        app,
        lifespan="off",
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    handle = ApiServer(uvicorn.Server(config), listeners, url_of(host, bound))
    handle.start()
    return handle


def url_of(host: str, port: int) -> str:
    """Return where this machine reaches a server that listens on `host`."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    shown = f"[{here}]" if ":" in here else here
    return f"http://{shown}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # With the protocol named, asyncio sets TCP_NODELAY; without it each request after the
        # first on a connection took 44 ms instead of 2.
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(
            f"controller.host: cannot listen on {host!r} ({error.strerror}); "
            "use an address of this machine, for example 127.0.0.1"
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        by = holder(port) if error.errno == errno.EADDRINUSE else None
        who = f"{by} has it" if by else "`ss -ltnp` shows who has it"
        raise ConfigError(
            f"controller.port: cannot listen on {host}:{port} ({error.strerror}; {who}); free it, "
            "or set controller.port to another port or `auto`"
        ) from error
    return listener

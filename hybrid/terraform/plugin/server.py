"""Serves a provider to the Terraform that started this process.

The handshake, in HashiCorp's go-plugin: Terraform starts the program with a cookie in its
environment, the program prints one line with the address of its gRPC server, and Terraform
calls it there until it calls `Shutdown`.
"""

from __future__ import annotations

import base64
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

from hybrid.terraform.plugin.dispatch import REQUESTS, answers
from hybrid.terraform.plugin.messages import MESSAGES
from hybrid.terraform.plugin.resource import Provider

_COOKIE = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
"""Not a secret: by it a plugin tells Terraform from a curious user."""

_LARGEST_REQUEST_BYTES = 64 * 2**20
_LARGEST_ANSWER_BYTES = 256 * 2**20
_THREAD_COUNT = 32
_PARENT_CHECK_S = 0.5
_LAST_CALLS_S = 30.0
"""How long running calls may go on after Terraform died: a creation records what it made."""

Handlers = Mapping[str, Any]


def serve(provider: Provider) -> None:
    """Serve until Terraform says `Shutdown`, or has died.

    Raises:
        SystemExit: The program was not started by Terraform.
    """
    if os.environ.get("TF_PLUGIN_MAGIC_COOKIE") != _COOKIE:
        sys.exit("This is a Terraform provider: Terraform starts it, it is not run by hand.")
    # Ctrl-C reaches the whole process group; Terraform tells us by StopProvider. Not SIG_IGN:
    # programs started from here would inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    done = threading.Event()
    with tempfile.TemporaryDirectory(prefix="tf") as folder:  # mode 0700: who is in may connect
        socket_path = f"{folder}/p"
        server, certificate = _listen(provider, done, f"unix:{socket_path}")
        server.start()
        _shake_hands(["1", "6", "unix", socket_path, "grpc", *certificate])
        _wait(provider, done)
        server.stop(_LAST_CALLS_S if provider.stopping.is_set() else 1.0).wait()


def _listen(provider: Provider, done: threading.Event, address: str) -> tuple[Any, list[str]]:
    """Return a server, and the field that tells Terraform its certificate."""
    import grpc

    server = grpc.server(
        futures.ThreadPoolExecutor(_THREAD_COUNT),
        options=[
            ("grpc.max_receive_message_length", _LARGEST_REQUEST_BYTES),
            ("grpc.max_send_message_length", _LARGEST_ANSWER_BYTES),
        ],
    )
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(name, handlers)
            for name, handlers in _services(provider, done).items()
        ]
    )
    if "PLUGIN_CLIENT_CERT" not in os.environ:
        server.add_insecure_port(address)
        return server, []
    from hybrid.terraform.plugin import certificate

    made = certificate.make()
    # Terraform's client certificate is on the curve P-521, which gRPC's TLS refuses. So only the
    # server proves itself; that nobody else connects is the folder's mode.
    credentials = grpc.ssl_server_credentials([(made.key, made.chain)])
    server.add_secure_port(address, credentials)
    return server, [base64.b64encode(made.encoded).decode().rstrip("=")]


def _services(provider: Provider, done: threading.Event) -> Mapping[str, Handlers]:
    empty = MESSAGES["Empty"]

    def shut_down(_: object) -> Any:
        done.set()
        return empty()

    called = answers(provider)
    return {
        "tfplugin6.Provider": {
            name: _unary(MESSAGES[request], called[name]) for name, request in REQUESTS.items()
        },
        "plugin.GRPCController": {"Shutdown": _unary(empty, shut_down)},
        "plugin.GRPCStdio": {"StreamStdio": _silent(empty, done)},
    }


def _unary(request: Any, answer: Callable[[Any], Any]) -> Any:
    import grpc

    return grpc.unary_unary_rpc_method_handler(
        lambda message, _: answer(message),
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def _silent(request: Any, done: threading.Event) -> Any:
    """Return a stream that says nothing: what we print goes to the log by standard error."""
    import grpc

    def wait(*_: object) -> Iterator[Any]:
        done.wait()
        yield from ()

    return grpc.unary_stream_rpc_method_handler(
        wait,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def _shake_hands(fields: list[str]) -> None:
    """Print the one line that Terraform reads; whatever is printed later is no longer it."""
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)
    os.write(out, ("|".join(fields) + "\n").encode())


def _wait(provider: Provider, done: threading.Event) -> None:
    """Wait for `Shutdown`; a Terraform that was killed says none."""
    parent = os.getppid()
    while not done.wait(_PARENT_CHECK_S):
        if os.getppid() != parent:
            provider.stopping.set()
            done.set()

"""A look at a host: what it is, and whether ports are open both ways between it and us."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pydantic import ValidationError

from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.adapters.ssh_fleet.refusals import RemoteFailedError
from hybrid.adapters.ssh_fleet.transport import Answer, Destination, Ssh, own_program
from hybrid.core.ports import Clock

_DIAL_S = 3.0
_ANY_PORT = (0, 0)
NODE_PORTS = (20_000, 29_999)
"""Where the node program puts Ray's own parts, see `hybrid.node.orders`."""


@dataclass(frozen=True)
class Look:
    """What to look at besides the host itself.

    Attributes:
        head_ip: Address at which nodes reach this machine.
        dial: What the host must reach, by name.
        listen: For what the host opens a port that we dial, and the first and last such port.
    """

    head_ip: str
    dial: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    listen: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def node_ports(workers: tuple[int, int] | None) -> Mapping[str, tuple[int, int]]:
    """Return samples of the ports that other nodes must reach on a host."""
    return {"Ray's ports": NODE_PORTS, "workers' ports": workers or _ANY_PORT}


def probe(ssh: Ssh, to: Destination, look: Look, *, limit_s: float, clock: Clock) -> Facts:
    """Return the facts about a host.

    Raises:
        SshError: It could not be looked at.
    """
    dialler = _Dialler(clock)
    arguments = {
        "head_ip": look.head_ip,
        "dial": {name: list(where) for name, where in look.dial.items()},
        "listen": {name: list(ports) for name, ports in look.listen.items()},
    }
    answer = ssh.run(
        to,
        own_program("probe"),
        arguments,
        step="the look at it",
        limit_s=limit_s,
        on_note=dialler.note,
    )
    more = {"clock_ahead_s": dialler.clock_ahead_s, "unreached": dialler.unreached()}
    try:
        return Facts.model_validate({**answer, **more})
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RemoteFailedError(
            f"{to.address} described itself in words that we do not know: {place}: {first['msg']}",
            "see whether a start-up file of its shell prints or changes anything; else it is a bug",
        ) from err


class _Dialler:
    """Calls the host's ports as soon as it says which they are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads: dict[str, threading.Thread] = {}
        self._problems: dict[str, str] = {}
        self.clock_ahead_s: float | None = None

    def note(self, note: Answer) -> None:
        self.clock_ahead_s = float(note["now_s"]) - self._clock.now_s()
        for name, port in note["ports"].items() if note["node_ip"] else ():
            where = (str(note["node_ip"]), int(port))
            self._problems[name] = "no answer"
            thread = threading.Thread(target=self._dial, args=(name, where), daemon=True)
            self._threads[name] = thread
            thread.start()

    def unreached(self) -> Mapping[str, str]:
        for thread in self._threads.values():
            thread.join(_DIAL_S + 1)
        return {name: why for name, why in self._problems.items() if why}

    def _dial(self, name: str, where: tuple[str, int]) -> None:
        try:
            socket.create_connection(where, timeout=_DIAL_S).close()
        except OSError as err:
            is_silent = isinstance(err, TimeoutError)
            why = "no answer" if is_silent else err.strerror or str(err)
            self._problems[name] = f"{why} (port {where[1]})"
        else:
            self._problems[name] = ""


@contextmanager
def listening(host: str, ports: Mapping[str, int]) -> Iterator[dict[str, tuple[str, int]]]:
    """Stand in for the head while it does not run, so that hosts can try to reach it.

    Yields where each name can be reached; a port that another program has is left out, and 0
    stands for any.
    """
    with ExitStack() as stack:
        there = {}
        for name, port in ports.items():
            try:
                server = stack.enter_context(socket.create_server((host, port), backlog=64))
            except OSError:
                continue
            there[name] = (host, int(server.getsockname()[1]))
        yield there

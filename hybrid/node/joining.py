"""What an instance says to its controller: it trades its join token, and reports."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NoReturn

from hybrid.node.orders import Join

ATTEMPT_S = 10.0
_ANSWER_BYTES = 65_536
_MAX_PROBLEM_CHARS = 2000
_OK = 200
_AGAIN = frozenset({408, 425, 429})


@dataclass(frozen=True)
class Answer:
    """What one attempt brought.

    Attributes:
        ray_token: The token; `""` when there is none yet.
        problem: Why not, or why a report was not taken.
        is_final: Whether asking again is useless.
    """

    ray_token: str = ""
    problem: str = ""
    is_final: bool = False


class Attempt:
    """One request, made by a child of this process.

    The node hears signals meanwhile, and Python's HTTP, 8 MB of it, goes away with the child.
    """

    def __init__(self, request: Callable[[], Answer]) -> None:
        """Begin. Raises `OSError` when no process or descriptor is left."""
        self._mine, its = os.pipe()
        try:
            os.set_blocking(self._mine, False)
            pid = os.fork()
        except OSError:
            os.close(self._mine)
            os.close(its)
            raise
        if pid == 0:
            _answer_in_child(request, its)
        os.close(its)

    def answer(self) -> Answer | None:
        """Return the answer, or `None` while there is none. Not asked again afterwards."""
        try:
            content = os.read(self._mine, 2 * _ANSWER_BYTES)
        except BlockingIOError:
            return None
        os.close(self._mine)
        if not content:  # it was killed
            return Answer(problem="the request ended without an answer")
        return Answer(**json.loads(content))


def _answer_in_child(request: Callable[[], Answer], pipe: int) -> NoReturn:
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # or it could not be ended gently
        os.write(pipe, json.dumps(asdict(request())).encode())
        code = 0
    finally:
        os._exit(code)


def ask(join: Join) -> Answer:
    """Ask once and return what came of it; raises nothing."""
    url = f"{join.url.rstrip('/')}/api/v1/join"
    try:
        join_token = join.join_token_file.read_text().strip()
    except OSError as err:
        return Answer(problem=f"cannot read the join token: {err}", is_final=True)
    answer = _call(url, {"instance_id": join.instance_id, "join_token": join_token})
    return answer if isinstance(answer, Answer) else _accepted(answer, url)


def tell(join: Join, join_token: str, *, phase: str, problem: str) -> Answer:
    """Report once and return what was said against it; raises nothing."""
    content = {
        "instance_id": join.instance_id,
        "join_token": join_token,
        "phase": phase,
        "problem": problem[:_MAX_PROBLEM_CHARS],
    }
    answer = _call(f"{join.url.rstrip('/')}/api/v1/join/report", content)
    return answer if isinstance(answer, Answer) else Answer()


def _call(url: str, content: dict[str, str]) -> bytes | Answer:
    """Return what came back, or why nothing useful did."""
    from http.client import HTTPException

    try:
        status, answer = _post(url, json.dumps(content))
    except (OSError, ValueError, HTTPException) as err:
        return Answer(
            problem=f"the controller at {url} did not answer: {err}; it is asked again. If it "
            "stays so, let this machine reach that address: head.address, routes, firewalls"
        )
    if status == _OK:
        return answer
    is_final = 400 <= status < 500 and status not in _AGAIN
    return Answer(problem=f"{url} answered {status}: {_message(answer)}", is_final=is_final)


def _post(url: str, body: str) -> tuple[int, bytes]:
    # Not urllib's client: it would follow redirects and use proxies, both with our secret.
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    make = HTTPSConnection if is_tls else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=ATTEMPT_S)
    try:
        headers = {"Content-Type": "application/json", "Connection": "close"}
        connection.request("POST", parts.path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(_ANSWER_BYTES)
    finally:
        connection.close()


def _accepted(content: bytes, url: str) -> Answer:
    try:
        ray_token = json.loads(content)["ray_token"]
    except (ValueError, KeyError, TypeError):
        ray_token = None
    # Anything else could not stand in an environment variable or an HTTP header.
    is_usable = isinstance(ray_token, str) and ray_token.isascii() and ray_token.isprintable()
    if not is_usable or not ray_token:
        return Answer(problem=f"{url} answered without a usable Ray token")
    return Answer(ray_token=ray_token)


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"]["message"])[:1000]
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace").strip() or "no reason given"

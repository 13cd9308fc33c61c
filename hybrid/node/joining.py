"""Trading an instance's one-time join token for the cluster's Ray token."""

from __future__ import annotations

import http.client
import json
import queue
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from hybrid.node.orders import Join

ATTEMPT_S = 10.0
_ANSWER_BYTES = 65_536
_AGAIN = frozenset({408, 425, 429})


@dataclass(frozen=True)
class Answer:
    """What one attempt brought.

    Attributes:
        ray_token: The token; `""` when there is none yet.
        problem: Why not.
        is_final: Whether asking again is useless.
    """

    ray_token: str = ""
    problem: str = ""
    is_final: bool = False


class Attempt:
    """One request, made in a thread so that the node still hears signals meanwhile."""

    def __init__(self, join: Join) -> None:
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=lambda: self._answers.put(ask(join)), name="join", daemon=True
        )
        self._thread.start()

    def answer(self) -> Answer | None:
        """Return the answer, or `None` while there is none."""
        if self._thread.is_alive():
            return None
        try:
            return self._answers.get_nowait()
        except queue.Empty:
            return Answer(problem="the request ended without an answer")


def ask(join: Join) -> Answer:
    """Ask once and return what came of it; raises nothing."""
    url = f"{join.url.rstrip('/')}/api/v1/join"
    try:
        join_token = join.join_token_file.read_text().strip()
    except OSError as err:
        return Answer(problem=f"cannot read the join token: {err}", is_final=True)
    try:
        body = json.dumps({"instance_id": join.instance_id, "join_token": join_token})
        status, content = _post(url, body)
    except (OSError, ValueError, http.client.HTTPException) as err:
        return Answer(problem=f"the controller at {url} did not answer: {err}")
    if status == http.client.OK:
        return _accepted(content, url)
    is_final = 400 <= status < 500 and status not in _AGAIN
    return Answer(problem=f"{url} answered {status}: {_message(content)}", is_final=is_final)


def _post(url: str, body: str) -> tuple[int, bytes]:
    # Not urllib: it would follow redirects and use proxies, both with our secret.
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    make = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
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
        return str(json.loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace").strip() or "no reason given"

"""The trade of tokens, over real HTTP on loopback."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hybrid.node.folder import Phase
from hybrid.node.joining import Attempt, ask
from hybrid.node.orders import Join
from hybrid.node.processes import descendants, send
from tests.node.box import Box, is_gone, wait_until
from tests.node.controller import FakeController


@pytest.fixture
def controller() -> Iterator[FakeController]:
    with FakeController() as made:
        yield made


def make_join(tmp_path: Path, url: str) -> Join:
    token_file = tmp_path / "join_token"
    token_file.write_text("one-time\n")
    return Join(url=url, instance_id="i-1", join_token_file=token_file)


def test_a_token_is_traded(controller: FakeController, tmp_path: Path) -> None:
    answer = ask(make_join(tmp_path, controller.url + "/"))

    assert answer.ray_token == "ray-token"
    assert controller.requests == [
        ("/api/v1/join", {"instance_id": "i-1", "join_token": "one-time"})
    ]


@pytest.mark.parametrize(
    ("status", "is_final"),
    [(code, True) for code in (401, 403, 404, 409, 422)]
    + [(code, False) for code in (307, 408, 429, 500, 503)],
)
def test_only_a_refusal_for_good_is_final(
    controller: FakeController, tmp_path: Path, status: int, is_final: bool
) -> None:
    controller.replies = [(status, {"error": {"kind": "X", "message": "because"}})]

    answer = ask(make_join(tmp_path, controller.url))

    assert (answer.ray_token, answer.is_final) == ("", is_final)
    assert answer.problem.endswith(f"answered {status}: because")


@pytest.mark.parametrize(
    "body", [{}, {"ray_token": ""}, {"ray_token": 5}, {"ray_token": "a\nb"}, []]
)
def test_an_answer_without_a_usable_token_is_asked_for_again(
    controller: FakeController, tmp_path: Path, body: object
) -> None:
    controller.replies = [(200, body)]

    answer = ask(make_join(tmp_path, controller.url))

    assert answer.problem.endswith("without a usable Ray token")
    assert not answer.is_final


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:22999", "http://127.0.0.1:notaport", "", "http://"]
)
def test_a_controller_that_is_away_is_asked_again(tmp_path: Path, url: str) -> None:
    answer = ask(make_join(tmp_path, url))

    assert "did not answer" in answer.problem
    assert not answer.is_final


def test_a_missing_join_token_is_final(tmp_path: Path) -> None:
    join = make_join(tmp_path, "http://127.0.0.1:22999")
    join.join_token_file.unlink()

    assert ask(join).is_final


def orders_to_join(instance: Box, url: str) -> None:
    token_file = instance.path / "join_token"
    token_file.write_text("one-time")
    join = {"url": url, "instance_id": "i-1", "join_token_file": str(token_file)}
    instance.write(join=join)


@pytest.mark.slow
def test_an_instance_joins_when_the_controller_is_back(
    instance: Box, controller: FakeController
) -> None:
    controller.replies = [(503, {}), (200, {"ray_token": "canary-token"})]
    orders_to_join(instance, controller.url)

    instance.start_and_wait()

    assert instance.given()["env"]["RAY_AUTH_TOKEN"] == "canary-token"
    assert len(controller.requests) == 2
    assert instance.problem == ""
    written = b"".join(p.read_bytes() for p in instance.path.iterdir())
    assert b"canary-token" not in written
    assert b"one-time" not in written  # it was good for one use


def test_a_request_that_is_killed_is_no_answer(controller: FakeController, tmp_path: Path) -> None:
    controller.is_silent = True
    others = set(descendants([os.getpid()]))  # servers that other tests share
    attempt = Attempt(partial(ask, make_join(tmp_path, controller.url)))
    wait_until(lambda: controller.requests, "the request")
    assert attempt.answer() is None
    (child,) = set(descendants([os.getpid()])) - others

    send(child, signal.SIGTERM)

    answer = wait_until(attempt.answer, "the end of the request")
    assert answer is not None
    assert answer.problem == "the request ended without an answer"
    os.waitpid(child.pid, 0)


@pytest.mark.slow
def test_a_refused_instance_fails_and_stays_rented(
    instance: Box, controller: FakeController
) -> None:
    controller.replies = [(403, {"error": {"kind": "E", "message": "the token was used before"}})]
    orders_to_join(instance, controller.url)

    instance.start_and_wait(Phase.FAILED)

    assert "answered 403: the token was used before" in instance.problem
    wait_until(lambda: len(instance.everything()) == 2, "the end of its report")


@pytest.mark.slow
def test_an_instance_that_waits_for_an_answer_still_obeys(
    instance: Box, controller: FakeController
) -> None:
    controller.is_silent = True
    orders_to_join(instance, controller.url)
    instance.start_and_wait(Phase.JOINING)
    wait_until(lambda: controller.requests, "the request")
    found = instance.everything()

    done = instance.call("stop")

    assert done.returncode == 0
    assert is_gone(found)
    assert json.loads((instance.path / "status.json").read_text())["phase"] == "stopped"

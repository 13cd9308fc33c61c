"""What a node tells its controller, and that nothing about it can hold the node up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybrid.node.folder import Phase
from hybrid.node.joining import Answer, Attempt, tell
from hybrid.node.orders import Join
from hybrid.node.reporting import REPEAT_S, SETTLED_S, Reporter
from tests.node.box import Box, wait_until
from tests.node.controller import FakeController


@pytest.fixture
def controller() -> Iterator[FakeController]:
    with FakeController() as made:
        yield made


def make_join(tmp_path: Path, url: str = "http://127.0.0.1:22999") -> Join:
    token_file = tmp_path / "join_token"
    token_file.write_text("one-time\n")
    return Join(url=url, instance_id="i-1", join_token_file=token_file)


class Line(Attempt):
    """A line to a controller that answers when the test says so."""

    def __init__(self, request: Callable[[], Answer]) -> None:
        self.request = request
        self.reply: Answer | None = None

    def answer(self) -> Answer | None:
        return self.reply


class Story:
    """A reporter on a clock of its own."""

    def __init__(self, join: Join | None) -> None:
        self.now_s = 100.0
        self.lines: list[Line] = []
        self.is_out_of_processes = False
        self.reporter = Reporter(join, start=self._call, monotonic_s=lambda: self.now_s)

    def _call(self, request: Callable[[], Answer]) -> Attempt:
        if self.is_out_of_processes:
            raise BlockingIOError
        self.lines.append(Line(request))
        return self.lines[-1]

    def said(self) -> list[tuple[str, str]]:
        words = [line.request.keywords for line in self.lines]  # type: ignore[attr-defined]
        return [(str(w["phase"]), w["problem"]) for w in words]

    def live(self, duration_s: float) -> None:
        """Let seconds pass, with a step in each."""
        for _ in range(round(duration_s)):
            self.reporter.step()
            self.now_s += 1.0
        self.reporter.step()

    def reply(self, problem: str = "", *, is_final: bool = False) -> None:
        self.lines[-1].reply = Answer(problem=problem, is_final=is_final)
        self.reporter.step()


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(make_join(tmp_path))


def test_only_what_lasts_is_told_and_only_once(story: Story) -> None:
    story.reporter.say(Phase.CHECKING, "")
    story.reporter.step()
    story.reporter.say(Phase.STARTING, "")
    story.live(SETTLED_S + 1)
    story.reply()
    story.reporter.say(Phase.STARTING, "")
    story.live(500)

    assert story.said() == [("starting", "")]


def test_a_failure_is_told_at_once_and_again_and_again(story: Story) -> None:
    story.reporter.say(Phase.FAILED, "no GPU")
    story.reporter.step()
    assert story.said() == [("failed", "no GPU")]

    story.reply()
    story.live(REPEAT_S + 1)

    assert story.said() == [("failed", "no GPU")] * 2


def test_a_controller_that_is_away_hears_the_newest_when_it_is_back(story: Story) -> None:
    story.reporter.say(Phase.JOINING, "a")
    story.live(2)
    story.reporter.say(Phase.RUNNING, "")
    story.live(5)
    assert story.said() == [("joining", "a")]  # one message at a time

    story.reply("the controller did not answer")
    story.live(2)
    assert story.said() == [("joining", "a"), ("running", "")]
    story.reply("the controller did not answer")
    story.live(3)
    story.reply()
    story.live(500)

    assert story.said() == [("joining", "a"), ("running", ""), ("running", "")]


def test_it_is_tried_for_ever_and_less_and_less_often(story: Story) -> None:
    story.reporter.say(Phase.FAILED, "no GPU")
    for _ in range(600):
        story.live(1)
        if story.lines[-1].reply is None:
            story.reply("away")

    assert 10 < len(story.lines) < 20


def test_what_is_refused_for_good_is_not_said_again(story: Story) -> None:
    story.reporter.say(Phase.FAILED, "no GPU")
    story.live(1)
    story.reply("answered 409", is_final=True)
    story.live(500)
    assert len(story.lines) == 1

    story.reporter.say(Phase.EXITED, "")
    story.live(1)
    assert story.said()[1:] == [("exited", "")]


def test_a_machine_without_room_for_a_process_tries_later(story: Story) -> None:
    story.is_out_of_processes = True
    story.reporter.say(Phase.FAILED, "no GPU")
    story.live(1)
    story.is_out_of_processes = False
    story.live(5)

    assert story.said() == [("failed", "no GPU")]


def test_a_node_that_does_not_join_tells_nobody(tmp_path: Path) -> None:
    join = make_join(tmp_path)
    join.join_token_file.unlink()

    for story in (Story(None), Story(join)):
        story.reporter.say(Phase.FAILED, "no GPU")
        story.live(100)
        assert story.lines == []


def test_a_report_is_one_request_of_bounded_size(
    controller: FakeController, tmp_path: Path
) -> None:
    join = make_join(tmp_path, controller.url)

    answer = tell(join, "one-time", phase="failed", problem="\u6b65" * 5000)

    assert answer == Answer()
    assert controller.reports == [("failed", "\u6b65" * 2000)]
    assert controller.reporters == {("i-1", "one-time")}


@pytest.mark.parametrize(
    ("status", "is_final"), [(401, True), (409, True), (404, True), (429, False), (503, False)]
)
def test_a_report_that_is_not_taken_says_whether_to_try_again(
    controller: FakeController, tmp_path: Path, status: int, is_final: bool
) -> None:
    controller.report_status = status

    answer = tell(make_join(tmp_path, controller.url), "one-time", phase="failed", problem="")

    assert (bool(answer.problem), answer.is_final) == (True, is_final)


def join_at(instance: Box, url: str) -> None:
    (instance.path / "join_token").write_text("one-time")
    token_file = str(instance.path / "join_token")
    instance.write(join={"url": url, "instance_id": "i-1", "join_token_file": token_file})


@pytest.mark.slow
def test_ray_that_does_not_start_is_reported_with_its_last_words(
    instance: Box, controller: FakeController
) -> None:
    instance.behave("fail")
    join_at(instance, controller.url)

    instance.start_and_wait(Phase.FAILED)

    wait_until(lambda: ("failed", instance.problem) in controller.reports, "the report")
    assert "the cluster runs Ray 0.1" in instance.problem
    assert controller.reporters == {("i-1", "one-time")}  # also after it was traded


@pytest.mark.slow
def test_a_node_that_cannot_report_works_all_the_same(
    instance: Box, controller: FakeController
) -> None:
    controller.report_status = 500
    join_at(instance, controller.url)

    instance.start_and_wait(Phase.RUNNING)

    wait_until(lambda: len(controller.reports) > 1, "a second try")
    assert instance.raylet().name == "raylet"
    assert instance.problem == ""


@pytest.mark.slow
def test_a_controller_that_is_never_reached_is_why_the_lease_ended(instance: Box) -> None:
    lease = instance.path / "lease"
    lease.write_text("9999999999")
    join_at(instance, "http://127.0.0.1:22999")
    instance.write(lease_file=str(lease))
    instance.start_and_wait(Phase.JOINING)
    wait_until(lambda: "did not answer" in instance.problem, "the reason")
    assert "let this machine reach that address" in instance.problem

    lease.write_text("1")

    instance.wait_for(Phase.STOPPED)
    assert instance.problem.startswith("lease ended; before, the controller at http://127.0.0.1")

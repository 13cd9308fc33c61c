"""Requests from other threads, and the bell that signal handlers ring."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from hybrid.client import client, http
from hybrid.control import commands
from hybrid.control import mailbox as mailbox_module
from hybrid.control.mailbox import ANSWER_S, LAST_S, Mailbox
from hybrid.core.errors import ClusterError

# The handler runs in the thread that waits, at any line of `wait`.
_RUNG_BY_SIGNALS = """
import signal
from hybrid.control.mailbox import Mailbox

mailbox = Mailbox()
signal.signal(signal.SIGALRM, lambda *_: mailbox.ring())
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for _ in range(20_000):
    mailbox.wait(0.0001)
signal.setitimer(signal.ITIMER_REAL, 0)
print("went on")
"""

# A timer stands for SIGTERM; a bell that it cannot ring ends the test by its time limit.
_ENDED_BY_A_SIGNAL = """
import signal
from hybrid.control.mailbox import Mailbox

mailbox = Mailbox()
signal.signal(signal.SIGALRM, lambda *_: mailbox.ring())
signal.setitimer(signal.ITIMER_REAL, 0.2)
mailbox.wait(3600)
print("went on")
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [_RUNG_BY_SIGNALS, _ENDED_BY_A_SIGNAL])
def test_a_signal_handler_may_ring_at_any_moment(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60
    )

    assert done.stdout == "went on\n"


def test_a_bell_that_rang_before_the_pause_ends_it_once() -> None:
    mailbox = Mailbox()
    mailbox.ring()
    mailbox.ring()

    mailbox.wait(3600)

    late = threading.Timer(0.05, mailbox.ring)
    late.start()
    mailbox.wait(3600)
    late.join()


def test_what_nobody_waits_for_any_more_is_not_done() -> None:
    mailbox = Mailbox()
    done: list[int] = []

    with pytest.raises(ClusterError, match="nothing was done"):
        mailbox.ask(lambda: done.append(1), timeout_s=0.01)
    mailbox.serve()

    assert done == []


def test_what_has_begun_is_not_said_to_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox_module, "LAST_S", 0.01)
    mailbox = Mailbox()
    has_begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        has_begun.set()
        may_end.wait(60)

    def serve() -> None:
        mailbox.wait(60)
        mailbox.serve()

    loop = threading.Thread(target=serve)
    loop.start()
    asked: list[str] = []

    def ask() -> None:
        try:
            mailbox.ask(slow, timeout_s=0.5)
        except ClusterError as error:
            asked.append(str(error))

    asker = threading.Thread(target=ask)
    asker.start()
    has_begun.wait(60)
    asker.join(60)
    may_end.set()
    loop.join(60)

    assert "this is being done" in asked[0]


def test_the_controllers_sentence_comes_before_the_clients_patience_ends() -> None:
    assert ANSWER_S + LAST_S < http.READ_S
    assert commands.LOOK_S + LAST_S < client.LOOK_S

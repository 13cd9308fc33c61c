"""Requests from other threads, and the bell that signal handlers ring."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from hybrid.control.mailbox import Mailbox

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

"""What ssh says, and what that asks of a person."""

from __future__ import annotations

import pytest

from hybrid.adapters.ssh_fleet import refusals
from hybrid.adapters.ssh_fleet.refusals import (
    AuthRefusedError,
    HostKeyChangedError,
    HostKeyUnknownError,
    HostNotFoundError,
    HostUnreachableError,
    NoPythonError,
    RemoteFailedError,
    SshError,
    of_ssh,
)
from hybrid.core.errors import FleetError

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Offending ED25519 key in /h/.ssh/known hosts:17
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("code", "said", "wanted"),
    [
        (255, CHANGED, HostKeyChangedError),
        (255, "No ED25519 host key is known for x and you ...", HostKeyUnknownError),
        (255, "Host key verification failed.", HostKeyUnknownError),
        (255, "ops@x: Permission denied (publickey).", AuthRefusedError),
        (255, "Received disconnect: Too many authentication failures", AuthRefusedError),
        (255, "ssh: Could not resolve hostname x: Name or service not known", HostNotFoundError),
        (255, "ssh: connect to host x port 22: Connection timed out", HostUnreachableError),
        (255, "ssh: connect to host x port 22: Connection refused", HostUnreachableError),
        (255, "ssh: connect to host x port 22: No route to host", HostUnreachableError),
        (255, "kex_exchange_identification: read: Connection reset", HostUnreachableError),
        (255, "Connection timed out during banner exchange", HostUnreachableError),
        (255, "Timeout, server x not responding.", HostUnreachableError),
        (255, "", HostUnreachableError),
        (255, "Bad configuration option: nonsense", RemoteFailedError),
        (127, "bash: line 1: /p: No such file or directory", NoPythonError),
        (126, "bash: line 1: /p: Permission denied", NoPythonError),
        (1, "/p: Command not found.", NoPythonError),  # csh
        (1, "Traceback ...\nValueError: no", RemoteFailedError),
        (0, "", RemoteFailedError),
        (-9, "", RemoteFailedError),
    ],
)
def test_the_words_of_ssh_become_one_class_for_each_next_step(
    code: int, said: str, wanted: type[SshError]
) -> None:
    error = of_ssh("x", "/p", code, said)

    assert type(error) is wanted
    assert isinstance(error, FleetError)
    assert error.found
    assert error.remedy
    assert "\n" not in str(error)


def test_only_what_passes_by_itself_is_tried_again_by_itself() -> None:
    away = [name for name, kind in vars(refusals).items() if getattr(kind, "is_away", False)]

    assert away == ["HostUnreachableError", "StepTimeoutError"]


def test_a_changed_key_is_told_with_its_place_and_a_warning() -> None:
    error = of_ssh("x", "/p", 255, CHANGED)

    assert "/h/.ssh/known hosts line 17" in error.found
    assert "sed -i 17d '/h/.ssh/known hosts'" in error.remedy
    assert "somebody may stand in between" in error.remedy


@pytest.mark.parametrize(
    ("code", "said", "found", "remedy"),
    [
        (
            126,
            "bash: line 1: /p: Is a directory",
            "/p on x cannot be run (bash: line 1: /p",
            "`pyt",
        ),
        (
            127,
            "fish: Unknown command: /p\nfish: \nexec /p -\n     ^~~^\n",
            "there is no Python /p on x (fish: Unknown command: /p)",
            "command -v python3",
        ),
        (
            1,
            "ModuleNotFoundError: No module named 'encodings'\n\nCurrent thread 0x1 (most recent "
            "call first):\n  <no Python frame>\n",
            "exit code 1: ModuleNotFoundError: No module named 'encodings'",
            "`ssh x '/p -c 1'`",
        ),
        (1, "OSError: [Errno 28] No space left on device: 'x'", "No space left", "`df -i`"),
        (1, "OSError: [Errno 30] Read-only file system: 'x'", "Read-only", "`dmesg`"),
        (255, "Can't open user config file /c: No such file", "cannot be called", "onprem.ssh"),
        (255, "command-line line 0: Bad port 'abc'.", "cannot be called", "onprem.ssh"),
        (255, "\x1b[31mx: \x1b]0;title\x07no\x00 luck\x1b[0m\r\n", "failed: x: no luck", "-v true"),
    ],
)
def test_what_is_shown_is_the_line_that_says_why(
    code: int, said: str, found: str, remedy: str
) -> None:
    error = of_ssh("x", "/p", code, said)

    assert found in error.found
    assert remedy in error.remedy

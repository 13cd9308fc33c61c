"""Programs on a host, over a real OpenSSH server on loopback."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hybrid.adapters.clock import SystemClock
from hybrid.adapters.ssh_fleet import Destination, Ssh
from hybrid.adapters.ssh_fleet.refusals import (
    AuthRefusedError,
    HostKeyChangedError,
    HostKeyUnknownError,
    HostNotFoundError,
    HostUnreachableError,
    NoPythonError,
    RemoteFailedError,
    StepTimeoutError,
)
from hybrid.adapters.ssh_fleet.transport import Answer, Program, SshSettings
from hybrid.node.processes import find, find_all
from tests.node.box import wait_until
from tests.sshd.network import Network
from tests.sshd.server import Keys, Server, make_key

pytestmark = pytest.mark.slow

ECHO = "def main(**words):\n    return words\n"


def run(
    ssh: Ssh, to: Destination, source: str = ECHO, limit_s: float = 20.0, **words: Any
) -> Answer:
    return ssh.run(to, Program("a test", source), words, step="a test", limit_s=limit_s)


def test_an_answer_comes_back_whatever_the_values_hold(ssh: Ssh, server: Server) -> None:
    words: dict[str, Any] = {
        "a": "'; touch /tmp/x #\n$(id) `id` \\ \" é 漢\0",
        "b": [1, None, {"c": 2.5}],
    }

    assert run(ssh, server.to(), **words) == words


def test_much_goes_both_ways(ssh: Ssh, server: Server) -> None:
    text = "x" * 2_000_000

    assert run(ssh, server.to(), text=text) == {"text": text}


def test_what_a_shell_prints_at_its_start_is_no_answer(ssh: Ssh, server: Server) -> None:
    source = f"import sys\nsys.stdout.write('{{\"kind\": 1}}\\n@hybri')\n{ECHO}"

    assert run(ssh, server.to(), source, a=1) == {"a": 1}


@pytest.mark.parametrize("start", ["read -t 1 x; read -t 1 y", "cd /; echo hello; echo oh >&2"])
def test_a_start_up_file_that_asks_or_talks_changes_nothing(
    ssh: Ssh, server: Server, start: str
) -> None:
    (server.home / ".bashrc").write_text(f"{start}\n")

    assert run(ssh, server.to(), a=1) == {"a": 1}


@pytest.mark.parametrize("start", ["echo closed for repair; exit 0", "echo closed for repair; yes"])
def test_what_runs_in_place_of_our_program_is_told_by_its_words(
    ssh: Ssh, server: Server, start: str
) -> None:
    (server.home / ".bashrc").write_text(f"{start}\n")

    with pytest.raises((RemoteFailedError, StepTimeoutError), match=r"closed for repair|said: y\."):
        run(ssh, server.to(), limit_s=2)


def test_what_we_sent_is_not_shown_when_it_comes_back(ssh: Ssh, server: Server) -> None:
    with pytest.raises(RemoteFailedError, match="in place of cat: it said nothing"):
        run(ssh, server.to("cat"), secret="s" * 40)


def test_a_program_that_nobody_waits_for_any_more_ends_itself(
    ssh: Ssh, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.adapters.ssh_fleet.transport._AFTER_S", 0)
    source = (
        "import os, pathlib, time\ndef main():\n"
        "    (pathlib.Path.home() / 'pid').write_text(str(os.getpid()))\n    time.sleep(600)\n"
    )

    with pytest.raises(StepTimeoutError):
        run(ssh, server.to(), source, limit_s=0.8)

    pid = int((server.home / "pid").read_text())
    wait_until(lambda: find(pid) is None, "it to end")


def test_notes_come_before_the_answer(ssh: Ssh, server: Server) -> None:
    heard: list[Answer] = []
    source = "def main():\n    say('note', {'n': 1})\n    say('note', {'n': 2})\n    return {}\n"

    ssh.run(
        server.to(), Program("a test", source), {}, step="a test", limit_s=20, on_note=heard.append
    )

    assert heard == [{"n": 1}, {"n": 2}]


def test_no_value_is_ever_on_a_command_line(ssh: Ssh, server: Server) -> None:
    seen: list[bytes] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            for pid in find_all():
                with contextlib.suppress(OSError):
                    seen.append(Path(f"/proc/{pid}/cmdline").read_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run(ssh, server.to(), "import time\ndef main(s):\n    time.sleep(0.5)\n", s="canary-" + "77")
    is_over.set()
    watcher.join()

    assert any(b"BatchMode=yes" in line for line in seen)
    assert not any(b"canary-77" in line for line in seen)


def test_one_connection_carries_everything_and_ends_with_us(
    short: Path, keys: Keys, server: Server
) -> None:
    ssh = Ssh(short / "s", keys.settings(), SystemClock())
    for number in range(3):
        run(ssh, server.to(), n=number)
    accepted = (server.folder / "log").read_text().count("Accepted publickey")
    sockets = list((short / "s").iterdir())
    mode = (short / "s").stat().st_mode

    ssh.close()

    assert accepted == 1
    assert len(sockets) == 1
    assert mode & 0o077 == 0
    assert not (short / "s").exists()
    masters = [pid for pid in find_all() if str(short / "s").encode() in _command(pid)]
    assert masters == []


def test_a_home_with_a_module_of_a_standard_name_changes_nothing(ssh: Ssh, server: Server) -> None:
    source = "import os, sys\ndef main():\n    return {'path': sys.path}\n"

    path = run(ssh, server.to(), source)["path"]

    assert "" not in path


def test_a_key_that_is_not_on_record_is_not_taken(ssh: Ssh, keys: Keys, server: Server) -> None:
    keys.known_hosts.write_text("")

    with pytest.raises(HostKeyUnknownError, match=r"accept-new"):
        run(ssh, server.to())


def test_a_key_that_changed_stops_everything(ssh: Ssh, keys: Keys, server: Server) -> None:
    run(ssh, server.to())
    server.stop()
    server.new_host_key()
    server.start()

    with pytest.raises(HostKeyChangedError, match=f"sed -i 1d {keys.known_hosts}"):
        run(ssh, server.to(), ray_token="canary")


def test_a_host_that_does_not_know_us_says_what_to_add(
    ssh: Ssh, keys: Keys, server: Server
) -> None:
    keys.key.unlink()
    make_key(keys.key)

    with pytest.raises(AuthRefusedError, match=r"ssh-copy-id"):
        run(ssh, server.to())


def test_a_server_that_does_not_run_is_a_host_that_is_away(ssh: Ssh, server: Server) -> None:
    server.stop()

    with pytest.raises(HostUnreachableError, match=r"power it on|Power it on") as caught:
        run(ssh, server.to())

    assert caught.value.is_away


def test_a_name_that_leads_nowhere_is_told(ssh: Ssh) -> None:
    with pytest.raises(HostNotFoundError, match=r"the name no-such-host\.invalid leads nowhere"):
        run(ssh, Destination("no-such-host.invalid"))


def test_a_missing_interpreter_is_told(ssh: Ssh, server: Server) -> None:
    with pytest.raises(NoPythonError, match=r"there is no Python ~/no such/python on ssh://"):
        run(ssh, server.to("~/no such/python"))


def test_an_interpreter_below_home_may_have_a_space(ssh: Ssh, server: Server) -> None:
    (server.home / "my ray").mkdir()
    (server.home / "my ray" / "python").symlink_to("/usr/bin/env")
    script = server.home / "my ray" / "py"
    script.write_text('#!/bin/sh\nexec python3 "$@"\n')
    script.chmod(0o755)

    assert run(ssh, server.to("~/my ray/py"), a=1) == {"a": 1}


def test_an_interpreter_that_is_too_old_is_told(ssh: Ssh, server: Server) -> None:
    old = '#!/bin/sh\ncat >/dev/null\necho \'@hybrid {"kind": "too_old", "content": "3.6.9"}\'\n'
    server.tool("python3", old)

    with pytest.raises(NoPythonError, match=r"is Python 3\.6\.9, which Ray left behind"):
        run(ssh, server.to())


def test_a_program_that_fails_is_told_with_its_last_words(ssh: Ssh, server: Server) -> None:
    with pytest.raises(RemoteFailedError, match=r"exit code 1: ValueError: no luck"):
        run(ssh, server.to(), "def main():\n    raise ValueError('no luck')\n")


def test_a_step_that_hangs_has_an_end(ssh: Ssh, server: Server) -> None:
    source = "import time\ndef main():\n    time.sleep(600)\n"

    with pytest.raises(StepTimeoutError, match=r"a test was not done in 1\.5 s"):
        run(ssh, server.to(), source, limit_s=1.5)

    assert run(ssh, server.to(), a=1) == {"a": 1}  # over a new connection


def test_a_host_behind_a_cut_cable_is_away_also_when_it_was_connected(
    ssh: Ssh, network: Network
) -> None:
    machine = network.machine()
    run(ssh, machine.to())
    machine.cut()

    with pytest.raises((StepTimeoutError, HostUnreachableError)):
        run(ssh, machine.to(), limit_s=3)
    with pytest.raises(HostUnreachableError):
        run(ssh, machine.to(), limit_s=20)
    machine.heal()

    assert run(ssh, machine.to(), a=1) == {"a": 1}


def test_a_machine_without_ssh_is_told(
    short: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(short))

    with pytest.raises(RemoteFailedError, match=r"apt-get install openssh-client"):
        run(Ssh(short / "s", SshSettings(), SystemClock()), server.to())


def test_the_users_own_file_is_followed(ssh: Ssh, keys: Keys, server: Server) -> None:
    keys.config.write_text(
        f"Host gpu\n  HostName {server.ip}\n  Port {server.port}\n  User {server.user}\n"
        "  RemoteCommand false\n  RequestTTY force\n  LocalForward 1 127.0.0.1:1\n"
    )

    assert run(ssh, Destination("gpu"), a=1) == {"a": 1}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_nothing_of_the_machines_own_ssh_is_touched(ssh: Ssh, server: Server) -> None:
    before = _own_files()

    run(ssh, server.to())

    assert _own_files() == before


def _own_files() -> dict[str, float]:
    folders = (Path("~/.ssh").expanduser(), Path("/etc/ssh"))
    return {
        str(path): path.stat().st_mtime
        for folder in folders
        if folder.is_dir() and os.access(folder, os.R_OK)
        for path in folder.iterdir()
    }

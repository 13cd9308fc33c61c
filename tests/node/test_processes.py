"""Processes found and ended by id, never by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from hybrid.node import processes
from hybrid.node.processes import Process


def test_a_name_with_brackets_and_spaces_is_read_right() -> None:
    code = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') R 1 (x', 0, 0, 0);"
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()

        found = processes.find(child.pid)

        assert found is not None
        assert (found.name, found.parent_pid) == (") R 1 (x", os.getpid())
        child.kill()


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert processes.find(child.pid) is None
    assert processes.environment(child.pid) in ((), [b""])
    child.wait()


def test_a_signal_reaches_only_the_process_that_is_meant() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        found = processes.find(child.pid)
        assert found is not None
        older = Process(child.pid, found.start_time - 1, found.parent_pid, found.name)

        processes.send(older, signal.SIGKILL)
        assert processes.is_alive(found)
        processes.send(found, signal.SIGKILL)

        assert child.wait() == -signal.SIGKILL
        processes.send(found, signal.SIGKILL)


def test_processes_are_found_by_their_whole_setting() -> None:
    env = {**os.environ, "TAG_OF_TEST": "a/b"}
    with subprocess.Popen(["sleep", "1000"], env=env) as child:
        exact = processes.with_setting("TAG_OF_TEST", "a/b")
        part = processes.with_setting("TAG_OF_TEST", "a/")

        assert [process.pid for process in exact] == [child.pid]
        assert part == []
        child.kill()


def test_the_node_program_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import hybrid.node.__main__\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - sys.stdlib_module_names))\n"
        "print(sorted(n for n in sys.modules if n.startswith('hybrid.') and '.node' not in n))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd()
    )

    assert done.stdout.splitlines() == ["['hybrid']", "[]"]

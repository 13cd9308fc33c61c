"""Linux processes by id: look them up in /proc, mark ourselves, send signals safely.

A process is known by its id *and* its start time, because ids are used again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Process:
    """A live process.

    Attributes:
        start_time: Clock ticks after the machine's boot.
        name: The kernel's name for it: at most 15 characters of its program's file name.
    """

    pid: int
    start_time: int
    parent_pid: int
    name: str


def find(pid: int) -> Process | None:
    """Return a live process; `None` when there is none or it is a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may itself hold brackets and spaces.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in {"Z", "X", "x"}:
        return None
    return Process(
        pid=pid,
        start_time=int(fields[19]),
        parent_pid=int(fields[1]),
        name=head.partition("(")[2],
    )


def find_all() -> Mapping[int, Process]:
    """Return every live process of this machine by its id."""
    with os.scandir(_PROC) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    return {pid: process for pid in pids if (process := find(pid)) is not None}


def is_alive(process: Process) -> bool:
    """Return whether this very process still runs."""
    now = find(process.pid)
    return now is not None and now.start_time == process.start_time


def environment(pid: int) -> Collection[bytes]:
    """Return the `NAME=value` strings a process was started with; empty when unreadable."""
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return ()


def with_setting(name: str, value: str) -> list[Process]:
    """Return the processes, but not this one, that were started with exactly `name=value`."""
    wanted = f"{name}={value}".encode()
    return [
        process
        for pid, process in find_all().items()
        if pid != os.getpid() and wanted in environment(pid)
    ]


def descendants(roots: Iterable[int]) -> list[Process]:
    """Return the live children of `roots`, their children, and so on; not the roots."""
    children: dict[int, list[Process]] = {}
    for process in find_all().values():
        children.setdefault(process.parent_pid, []).append(process)
    return list(_walk(children, roots))


def _walk(children: Mapping[int, list[Process]], roots: Iterable[int]) -> Iterator[Process]:
    waiting, seen = list(roots), set(roots)
    while waiting:
        for process in children.get(waiting.pop(), ()):
            if process.pid not in seen:
                seen.add(process.pid)
                waiting.append(process.pid)
                yield process


def send(process: Process, signal_number: signal.Signals) -> None:
    """Send a signal to this very process; nothing happens when it is gone.

    Raises:
        PermissionError: It belongs to somebody else.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError as err:
        if err.errno != errno.ENOSYS:
            raise
        _send_by_id(process, signal_number)  # kernels before 5.3
        return
    try:
        # Between opening and this look the handle already holds the process, so the answer
        # stays true until the signal is sent.
        if is_alive(process):
            signal.pidfd_send_signal(handle, signal_number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _send_by_id(process: Process, signal_number: signal.Signals) -> None:
    if is_alive(process):
        try:
            os.kill(process.pid, signal_number)
        except ProcessLookupError:
            return


def become_subreaper() -> None:
    """Let orphans below this process become its own children instead of init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(argument), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}) failed: {os.strerror(code)}")


def boot_id() -> str:
    """Return a name of this boot of the machine; process ids mean nothing across boots."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""

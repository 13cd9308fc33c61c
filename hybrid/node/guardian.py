"""The supervisor's parent: a process that only waits, and cleans up if its child is killed.

    caller -> guardian -> supervisor -> ray start -> raylet -> workers
supervisor killed: its orphans become the guardian's children; it ends them all.
guardian killed:   the kernel tells the supervisor, which ends everything and itself.
both killed:       `python -m hybrid.node stop` finds what is left by its tag.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from hybrid.node import processes, scratch
from hybrid.node.ending import end_all
from hybrid.node.folder import BadFolderError, Folder, Phase, Status
from hybrid.node.journal import log
from hybrid.node.orders import Orders
from hybrid.node.stopping import stop
from hybrid.node.supervisor import Supervisor

EXIT_OK = 0
EXIT_DIED = 1
EXIT_BAD_FOLDER = 2
EXIT_TAKEN = 3
EXIT_STOP_ORDERED = 4

_CRASHED = 70
_START_LIMIT_S = 20.0


def run(folder: Folder) -> int:
    """Look after a node in this process until it ends; returns an exit code."""
    return _with_lock(folder, lambda orders, lock: _guard(folder, orders, lock, ready=-1))


def start(folder: Folder) -> int:
    """Look after a node in a new process of its own session; returns once it has begun."""
    return _with_lock(folder, lambda orders, lock: _detach(folder, orders, lock))


def stop_detached(folder: Folder) -> int:
    """End a node in a new process of its own session; returns at once.

    While such a process is at work another call changes nothing.
    """
    os.closerange(3, 4096)
    if not folder.path.is_dir():
        return EXIT_OK
    try:
        folder.order_stop()  # from here on the node obeys, even if we are killed now
        lock = folder.lock("stop.lock")
    except BlockingIOError:
        return EXIT_OK
    except (OSError, BadFolderError) as err:
        sys.stderr.write(f"{folder.path}: cannot order the stop: {err}\n")
        return EXIT_BAD_FOLDER
    if os.fork() == 0:
        os.setsid()
        _redirect(folder.path / "node.log")
        _finish(lambda: _stop(folder))
    os.close(lock)
    return EXIT_OK


def _stop(folder: Folder) -> int:
    left = stop(folder.path)
    for process in left:
        log(f"could not end {process.name} (pid {process.pid})")
    return EXIT_DIED if left else EXIT_OK


def _with_lock(folder: Folder, live: Callable[[Orders, int], int]) -> int:
    os.closerange(3, 4096)  # nothing that the caller had open is ours to keep
    try:
        orders = folder.orders()
        lock = folder.lock()
    except BadFolderError as err:
        sys.stderr.write(f"{err}\n")
        return EXIT_BAD_FOLDER
    except BlockingIOError:
        sys.stderr.write(f"{folder.path}: this node is running already\n")
        return EXIT_TAKEN
    if folder.is_stop_ordered:
        sys.stderr.write(f"{folder.path}: this node was told to stop; it does not start again\n")
        return EXIT_STOP_ORDERED
    return live(orders, lock)


def _detach(folder: Folder, orders: Orders, lock: int) -> int:
    mine, its = os.pipe()
    if os.fork() == 0:
        os.close(mine)
        os.setsid()
        _finish(lambda: _guard(folder, orders, lock, ready=its))
    os.close(its)
    # The lock goes on with the child; the caller hears of a child that could not begin.
    signal.alarm(int(_START_LIMIT_S))
    has_begun = os.read(mine, 1) == b"+"
    signal.alarm(0)
    return EXIT_OK if has_begun else EXIT_DIED


def _guard(folder: Folder, orders: Orders, lock: int, *, ready: int) -> int:
    _redirect(folder.path / "node.log")
    processes.become_subreaper()
    guardian_pid = os.getpid()
    # Until the child waits for signals itself, one that arrives must not be lost.
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        processes.die_with_parent(signal.SIGTERM)
        if os.getppid() != guardian_pid:
            os._exit(EXIT_DIED)
        _finish(lambda: _supervise(folder, orders, lock, ready))
    if ready >= 0:
        os.close(ready)
    _forward(signals, child)
    status = _wait(child)
    if status in (EXIT_OK, EXIT_DIED):
        return status
    _end_orphans(folder, orders, status)
    return EXIT_DIED


def _supervise(folder: Folder, orders: Orders, lock: int, ready: int) -> int:
    supervisor = Supervisor(folder, orders, lock)
    supervisor.begin()
    if ready >= 0:
        os.write(ready, b"+")
        os.close(ready)
    return supervisor.run()


def _forward(signals: tuple[signal.Signals, ...], child: int) -> None:
    def tell(_number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)

    for number in signals:
        signal.signal(number, tell)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)


def _wait(child: int) -> int:
    """Return the child's exit code, negative for a signal."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _end_orphans(folder: Folder, orders: Orders, status: int) -> None:
    how = f"was killed by signal {-status}" if status < 0 else "failed; see node.log"
    problem = f"the program that looks after this node {how}"
    log(problem)
    end_all(lambda: processes.descendants([os.getpid()]))
    with suppress(OSError):
        scratch.remove(orders.temp_dir)
    with suppress(OSError):
        folder.write_status(Status(Phase.FAILED, problem, at_s=time.time()))


def _redirect(log_file: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        output = os.dup(nothing)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for descriptor in (nothing, output):
        os.close(descriptor)


def _finish(live: Callable[[], int]) -> NoReturn:
    """Run a forked child's life and leave it without returning into the parent's code."""
    code = _CRASHED
    try:
        code = live()
    finally:
        if (error := sys.exception()) is not None:
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
        os._exit(code)

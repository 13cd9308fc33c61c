"""The life of one node: boot, join, start Ray, watch it, and end everything."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from hybrid.node import notice, processes, scratch
from hybrid.node.ending import GENTLE_S, end_all
from hybrid.node.folder import Folder, Phase, Status
from hybrid.node.interruption import Interruption
from hybrid.node.joining import Attempt, ask
from hybrid.node.journal import describe_exit, last_text, last_words, log
from hybrid.node.lease import Lease
from hybrid.node.notice import Draining, LeaseEnd, Notice
from hybrid.node.orders import Orders, Role
from hybrid.node.ports import NoPortError, PortChooser, fill, places
from hybrid.node.preflight import Outcome, Preflight, UnfitError
from hybrid.node.processes import Process
from hybrid.node.reporting import Reporter
from hybrid.node.spawning import SIGNALS, spawn

_CHECK_S = 1.0  # how often the lease and the folder are looked at
_GONE_CHECKS = 3
_DRAIN_TRIES = 3  # of a node whose lease is over
_MPS_START_S = 20.0
_MPS = "nvidia-cuda-mps"  # as the kernel cuts its name
_JOIN_AGAIN_S = (1.0, 1.0, 2.0, 2.0, 4.0)  # then always the last
_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class _EndedError(Exception):
    """This node's life is over: phase and problem to write down."""

    def __init__(self, phase: Phase, problem: str) -> None:
        super().__init__(problem)
        self.phase = phase
        self.problem = problem


class _TakenBackError(_EndedError):
    """The pretended cloud took the pretended machine, whatever ran on it."""

    def __init__(self) -> None:
        super().__init__(Phase.STOPPED, "the cloud took this machine back")


class _LeaseEndedError(_EndedError):
    """Nobody has renewed the lease."""

    def __init__(self) -> None:
        super().__init__(Phase.STOPPED, "lease ended")


class _BrokenError(_EndedError):
    """Ray does not run and will not; a rented machine is still there all the same."""


class Supervisor:
    """Runs a node until it must end; the caller made this process a subreaper's child."""

    def __init__(self, folder: Folder, orders: Orders, lock: int) -> None:
        self._folder = folder
        self._orders = orders
        self._lock = lock
        self._status = Status(phase=Phase.BOOTING)
        self._is_status_written = False
        self._is_pid_written = False
        self._lease = Lease(orders.lease_file)
        self._gone_count = 0
        self._exit_codes: dict[int, int] = {}
        self._ray_token = ""
        self._draining: Draining | None = None
        self._is_leaving = False  # the lease is over, and Ray is emptying the node
        self._interruption: Interruption | None = None
        self._reporter = Reporter(orders.join)
        self._chooser: PortChooser | None = None  # holds the locks of our ports

    def begin(self) -> None:
        """Take over the process: signals, orphans, pid.json, and ports, which callers wait for."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        processes.become_subreaper()
        self._say(Phase.BOOTING)
        with suppress(OSError, NoPortError):  # tried again, and said, when Ray is to start
            self._command()

    def run(self) -> int:
        """Live the node's life and return the exit code: 0 when it was told to end."""
        try:
            try:
                self._pause(self._orders.boot_delay_s)
                self._check_machine()
                self._ray_token = self._get_ray_token()
                self._start_mps()
                self._start_ray()
                self._watch()
            except _BrokenError as broken:
                self._clean_up()
                if self._orders.role is not Role.INSTANCE:
                    raise
                self._say(broken.phase, broken.problem)
                self._pause_for_ever()
        except _EndedError as ended:
            is_power_cut = isinstance(ended, _TakenBackError)
            self._clean_up(gentle_s=0.0 if is_power_cut else GENTLE_S)
            # A machine that broke, or never came to join, keeps saying why.
            said, problem = self._status.problem, ended.problem
            if said and problem and self._status.phase is Phase.JOINING:
                problem = f"{problem}; before, {said}"
            self._say(ended.phase, problem or said)
            return 0 if ended.phase is Phase.STOPPED else 1

    # --- the steps -------------------------------------------------------------------------

    def _check_machine(self) -> None:
        if self._orders.expected is None:
            return
        self._say(Phase.CHECKING)
        preflight = Preflight(
            self._orders.expected,
            python=self._orders.command[0],
            run=self._call,
            say=partial(self._say, Phase.CHECKING),
            say_installing=lambda: self._say(Phase.INSTALLING),
            pause=self._pause,
        )
        with self._broken_by(UnfitError, "this machine cannot join"):
            preflight.check()

    def _call(self, command: Sequence[str], limit_s: float) -> Outcome:
        output = self._folder.path / "check.log"
        try:
            pid = spawn(list(command), self._orders, "", output)
        except OSError as err:
            return Outcome(None, f"{command[0]}: {err.strerror}")
        self._exit_codes.pop(pid, None)  # of an orphan that had the same number
        code = self._wait_for(pid, limit_s)
        if code is None:
            _kill(pid)
            return Outcome(None, f"no answer in {limit_s:g} s")
        return Outcome(code, last_words(output), last_text(output))

    def _get_ray_token(self) -> str:
        if self._orders.join is not None:
            return self._join()
        if self._orders.ray_token_file is None:
            return ""
        with self._broken_by(OSError, "cannot read the Ray token"):
            return self._orders.ray_token_file.read_text().strip()

    def _join(self) -> str:
        assert self._orders.join is not None  # noqa: S101  # for the type checker
        self._say(Phase.JOINING)
        for wait_s in _forever(_JOIN_AGAIN_S):
            attempt = Attempt(partial(ask, self._orders.join))
            while (answer := attempt.answer()) is None:
                self._pause(0.05)
            if answer.ray_token:
                # It was good for one use.
                with suppress(OSError):
                    self._orders.join.join_token_file.unlink(missing_ok=True)
                return answer.ray_token
            if answer.is_final:
                raise _BrokenError(Phase.FAILED, f"could not join: {answer.problem}")
            self._say(Phase.JOINING, answer.problem)
            self._pause(wait_s)
        raise AssertionError

    def _start_mps(self) -> None:
        """Start NVIDIA's MPS, which ends with the node: it carries its mark."""
        if not self._orders.mps:
            return
        self._say(Phase.STARTING)
        with self._broken_by(OSError, "cannot prepare MPS"):
            scratch.prepare(self._orders.temp_dir)
            folder = self._orders.env.get("CUDA_MPS_PIPE_DIRECTORY")
            Path(folder or self._orders.temp_dir).mkdir(mode=0o700, exist_ok=True)
        done = self._call([self._orders.mps, "-d"], _MPS_START_S)
        if done.code != 0:
            raise _BrokenError(Phase.FAILED, f"NVIDIA's MPS does not start: {done.words}")

    def _start_ray(self) -> None:
        if (told := self._notice()) is not None:
            raise _BrokenError(Phase.FAILED, f"{told}; Ray is not started any more")
        self._say(Phase.STARTING)
        output = self._folder.path / "start.log"
        with self._broken_by((OSError, NoPortError), "cannot run `ray start`"):
            scratch.prepare(self._orders.temp_dir)
            pid = spawn(self._command(), self._orders, self._ray_token, output)
        code = self._wait_for(pid, self._orders.start_limit_s)
        if code is None:
            limit_s = self._orders.start_limit_s
            problem = f"`ray start` did not finish in {limit_s:g} s"
        elif code:
            problem = f"`ray start` {describe_exit(code)}"
        else:
            return
        raise _BrokenError(Phase.FAILED, f"{problem}; its last words: {last_words(output)}")

    def _command(self) -> list[str]:
        names = places(self._orders.command)
        if not names:
            return list(self._orders.command)
        if self._chooser is None:
            self._chooser = PortChooser(scratch.own_root() / "ports.lock", self._orders.ports)
        ports = self._chooser.choose(names, before=self._folder.ports(), seed=self._orders.tag)
        self._folder.write_ports(ports)
        return fill(self._orders.command, ports)

    def _watch(self) -> NoReturn:
        watched = {"raylet"} | ({"gcs_server"} if self._orders.role is Role.HEAD else set())
        watched |= {_MPS} if self._orders.mps else set()
        found = [p for p in processes.descendants([os.getpid()]) if p.name in watched]
        missing = watched - {process.name for process in found}
        if missing:
            words = last_words(self._folder.path / "start.log")
            raise _BrokenError(
                Phase.FAILED,
                f"`ray start` left no {' and no '.join(sorted(missing))}; its last words: {words}",
            )
        raylet = next(process for process in found if process.name == "raylet")
        self._say(Phase.RUNNING, raylet_pid=raylet.pid)
        if self._orders.takeback is not None:
            self._interruption = Interruption(self._orders.takeback, self._folder.notice_file)
        try:
            while True:
                self._pause(_CHECK_S)
                for process in found:
                    if not processes.is_alive(process):
                        self._break(process)
                self._heed_notice(raylet)
        except _LeaseEndedError:
            self._leave(raylet)
            raise

    def _leave(self, raylet: Process) -> None:
        """Let Ray empty the node, for a moment: what runs may end, and no other work comes."""
        if not self._orders.drain_command:
            return
        self._is_leaving = True
        end_s = time.monotonic() + self._orders.leave_s
        if self._draining is None:
            ends_at_s = time.time() + self._orders.leave_s
            self._draining = self._new_draining(LeaseEnd(ends_at_s, "lease"), raylet)
        while processes.is_alive(raylet) and time.monotonic() < end_s:
            self._step_draining(raylet)
            if self._draining.failed_count >= _DRAIN_TRIES:
                return  # the head is gone too
            self._pause(min(_CHECK_S, max(end_s - time.monotonic(), 0.0)))

    def _break(self, process: Process) -> NoReturn:
        code = self._exit_codes.get(process.pid)
        how = "ended" if code is None else describe_exit(code)
        told = self._notice()
        why = f"{told}; " if told else ""
        what = "NVIDIA's MPS" if process.name == _MPS else "Ray"
        raise _BrokenError(Phase.EXITED, f"{why}{what} ended by itself: {process.name} {how}")

    def _notice(self) -> Notice | None:
        if not self._orders.drain_command:
            return None
        return notice.read(self._folder.notice_file)

    def _heed_notice(self, raylet: Process) -> None:
        """Ask Ray to drain the node once the cloud takes the machine back."""
        if self._draining is None:
            told = self._notice()
            if told is None:
                return
            self._draining = self._new_draining(told, raylet)
        self._step_draining(raylet)

    def _new_draining(self, why: Notice, raylet: Process) -> Draining:
        return Draining(
            why,
            self._orders.drain_command,
            raylet_pid=raylet.pid,
            start=self._spawn_drain,
            end=_kill,
            last_words=lambda: last_words(self._drain_log),
        )

    def _step_draining(self, raylet: Process) -> None:
        assert self._draining is not None  # noqa: S101  # for the type checker
        self._draining.step(self._exit_codes)
        if self._draining.problem != self._status.problem:
            self._say(Phase.RUNNING, self._draining.problem, raylet_pid=raylet.pid)

    @property
    def _drain_log(self) -> Path:
        return self._folder.path / "drain.log"

    def _spawn_drain(self, command: list[str]) -> int:
        pid = spawn(command, self._orders, self._ray_token, self._drain_log)
        self._exit_codes.pop(pid, None)  # of an orphan that had the same number
        return pid

    # --- waiting ---------------------------------------------------------------------------

    def _pause(self, duration_s: float) -> None:
        """Wait, while signals, lease and folder are looked at; less when a child ended."""
        end_s = time.monotonic() + duration_s
        while True:
            self._check()
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return
            lease_s = math.inf if self._is_leaving else self._lease.left_s()
            wait_s = max(min(_CHECK_S, left_s, lease_s), 0.0)
            received = signal.sigtimedwait(SIGNALS, wait_s)
            if received is None:
                continue
            if received.si_signo in _STOP_SIGNALS:
                raise _EndedError(Phase.STOPPED, "")
            self._reap()
            if duration_s <= _CHECK_S:
                return

    def _pause_for_ever(self) -> NoReturn:
        while True:
            self._pause(60.0)

    def _wait_for(self, pid: int, limit_s: float) -> int | None:
        end_s = time.monotonic() + limit_s
        while pid not in self._exit_codes and time.monotonic() < end_s:
            self._pause(min(_CHECK_S, max(end_s - time.monotonic(), 0.0)))
            self._reap()
        return self._exit_codes.get(pid)

    def _check(self) -> None:
        self._write()
        self._reporter.step()
        self._lease.renew()
        if self._lease.left_s() <= 0 and not self._is_leaving:
            raise _LeaseEndedError
        if self._interruption is not None and self._interruption.step():
            raise _TakenBackError
        if self._folder.is_stop_ordered:
            raise _EndedError(Phase.STOPPED, "")
        # No name leads to our lock file any more: nobody can find or end this node.
        is_gone = os.fstat(self._lock).st_nlink == 0
        self._gone_count = self._gone_count + 1 if is_gone else 0
        if self._gone_count >= _GONE_CHECKS:
            raise _EndedError(Phase.STOPPED, "the folder of this node was removed")

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._exit_codes[pid] = os.waitstatus_to_exitcode(status)

    # --- the end ---------------------------------------------------------------------------

    def _clean_up(self, *, gentle_s: float = GENTLE_S) -> None:
        left = end_all(lambda: processes.descendants([os.getpid()]), gentle_s=gentle_s)
        self._reap()
        for process in left:
            log(f"could not end {process.name} (pid {process.pid})")
        try:
            scratch.remove(self._orders.temp_dir)
        except OSError as err:
            log(f"could not remove {self._orders.temp_dir}: {err}")

    # --- what we say -----------------------------------------------------------------------

    def _say(self, phase: Phase, problem: str = "", raylet_pid: int | None = None) -> None:
        if (phase, problem) != (self._status.phase, self._status.problem):
            log(f"{phase}: {problem}" if problem else phase)
        self._reporter.say(phase, problem)
        self._status = Status(phase, problem, at_s=time.time(), raylet_pid=raylet_pid)
        self._is_status_written = False
        self._write()

    def _write(self) -> None:
        """Write what is not written yet; a full disk only delays it."""
        with suppress(OSError):
            if not self._is_pid_written:
                me = processes.find(os.getpid())
                if me is not None:
                    self._folder.write_supervisor(me, self._orders.tag)
                self._is_pid_written = True
            if not self._is_status_written:
                self._folder.write_status(self._status)
                self._is_status_written = True

    @contextmanager
    def _broken_by(
        self, errors: type[Exception] | tuple[type[Exception], ...], what: str
    ) -> Iterator[None]:
        try:
            yield
        except errors as err:
            raise _BrokenError(Phase.FAILED, f"{what}: {err}") from err


def _kill(pid: int) -> None:
    process = processes.find(pid)
    if process is not None:
        processes.send(process, signal.SIGKILL)


def _forever(delays_s: tuple[float, ...]) -> Iterator[float]:
    yield from delays_s
    while True:
        yield delays_s[-1]

"""A job inside a placement group: it holds the job's nodes, and the job's tasks stay in it.

The user's program runs inside an actor of the group that captures child tasks, so whatever it
starts is placed in the group, on its nodes; `hybrid.job.fence` holds what Ray would let out. Only
Python programs can be run so: what a shell command starts would be a driver of its own, outside
(docs/decisions/0010-jobs-that-hold-nodes.md).
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from hybrid.job import signals
from hybrid.job.context import Context, context
from hybrid.job.fence import HOOK

_PYTHON = re.compile(r"python[0-9.]*")


class CommandError(ValueError):
    """The command cannot run inside a placement group; the message says what can."""


def run_in_group(
    here: Context,
    command: str,
    messenger: Callable[[Callable[[int], None]], AbstractContextManager[object]],
) -> int:
    """Hold the nodes of an attempt and run its program on the first; return its exit code."""
    try:
        program = program_of(command)
    except CommandError as error:
        print(f"hybrid: {error}", file=sys.stderr)
        return 2
    import ray
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    # Each job has a namespace of its own, as without us.
    ray.init(runtime_env={"worker_process_setup_hook": HOOK})
    bundle = {key: amount for key, amount in here.bundle.items() if amount}
    group = placement_group(
        [bundle] * len(here.slots),
        strategy="STRICT_SPREAD" if len(here.slots) > 1 else "STRICT_PACK",
        name=_name_of(here),
        bundle_label_selector=[{"ray.io/node-id": node_id} for node_id, _ in here.slots],
    )
    ray.get(group.ready())
    strategy = PlacementGroupSchedulingStrategy(
        group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
    )
    # The driver of a plain job uses the GPUs itself; that of a gang leaves them to its tasks.
    gpus = 0.0 if here.nodes else float(here.bundle.get("GPU", 0.0))
    runner: Any = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=0)(_Runner)
    # One call at a time: then the program runs in the main thread, where it may handle signals.
    actor = runner.options(scheduling_strategy=strategy).remote()
    pid: int = ray.get(actor.pid.remote())

    def send(number: int) -> None:
        if not signals.tell(number, iter([pid])):
            print("hybrid: this job does not handle the signal to save", file=sys.stderr)

    def end(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with messenger(send):
        try:
            code: int = ray.get(actor.run.remote(program, str(Path.cwd()), _output()))
        except ray.exceptions.RayError as error:
            print(f"hybrid: the job's process ended: {error}", file=sys.stderr)
            return 1
    return code


def program_of(command: str) -> list[str]:
    """Return the words of a Python command without the interpreter.

    Raises:
        CommandError: It is no such command.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"the command {command!r} cannot be read: {error}") from None
    is_python = len(words) > 1 and bool(_PYTHON.fullmatch(Path(words[0]).name))
    is_file = is_python and ((words[1] == "-m" and len(words) > 2) or not words[1].startswith("-"))
    if not is_file or _needs_shell(command):
        raise CommandError(
            f"a job that holds nodes (--nodes, or --site onprem with --gpus) runs inside a "
            f"placement group, which only a Python program can: write `python train.py ...` or "
            f"`python -m package ...`, without variables and other signs of the shell unless "
            f"they are quoted, not {command!r}"
        )
    return words[1:]


def _needs_shell(command: str) -> bool:
    """Return whether a shell would do more with a command than split it into words."""
    quote, is_escaped = "", False
    for sign in command:
        if is_escaped:
            is_escaped = False
        elif sign == "\\" and quote != "'":
            is_escaped = True
        elif sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        elif (sign in "$`" and quote != "'") or (sign in ";&|<>()\n" and not quote):
            return True
    return False


def _output() -> str:
    """Return the file that the wrapper writes to; its program on this machine writes there, too."""
    return str(Path("/proc/self/fd/1").readlink())


class _Runner:
    """Runs the user's program inside a worker of the group."""

    def pid(self) -> int:
        """Return this process."""
        return os.getpid()

    def run(self, program: list[str], folder: str, output: str) -> int:
        """Run a Python program as the interpreter would; return its exit code."""
        import ray

        if Path(output).is_file():
            file = os.open(output, os.O_WRONLY | os.O_APPEND)
            os.dup2(file, 1)
            os.dup2(file, 2)
            os.close(file)
            # Ray's worker writes to files of its own.
            sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        os.chdir(folder)
        # It is connected already, and has to stay so.
        ray.init = lambda *_args, **_named: nullcontext(ray.get_runtime_context())
        ray.shutdown = lambda *_args, **_named: None
        is_module = program[0] == "-m"
        sys.argv = program[1:] if is_module else program
        sys.path.insert(0, folder if is_module else str(Path(program[0]).resolve().parent))
        try:
            if is_module:
                runpy.run_module(program[1], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program[0], run_name="__main__")
        except SystemExit as leave:
            if leave.code is None or isinstance(leave.code, int):
                return leave.code or 0
            print(leave.code, file=sys.stderr)
            return 1
        except BaseException:  # noqa: BLE001  # as the interpreter does
            import traceback

            traceback.print_exc()
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return 0


def gang() -> Any:
    """Return the placement group of this job, a bundle on each of its nodes.

    In the driver, in tasks and in actors. Ray places a task somewhere in it without being asked;
    name the group with a bundle's index to choose the node.

    Raises:
        RuntimeError: This process belongs to no such job.
    """
    here = context()
    if here is None or not here.bundle:
        raise RuntimeError("this is no gang: submit the job with nodes, such as --nodes 2 --gpus 8")
    from ray.util import get_placement_group

    return get_placement_group(_name_of(here))


def _name_of(here: Context) -> str:
    return f"hybrid-{here.job_id}-{here.attempt}"

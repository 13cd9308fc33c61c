"""A job inside a placement group: it holds the job's nodes, and the job's tasks stay in it.

The user's program runs inside a task of the group that captures child tasks, so whatever it
starts is placed in the group, on its nodes. Only Python programs can be run so; what a shell
command starts elsewhere would be a driver of its own, outside (docs/decisions/0010).
"""

from __future__ import annotations

import os
import runpy
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Any

from hybrid.job.context import ENVIRONMENT, Context

GROUP = "HYBRID_GROUP"
"""Name of the job's placement group, for its own code."""

_PYTHONS = ("python", "python3")


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

    name = f"hybrid-{here.job_id}-{here.attempt}"
    ray.init(log_to_driver=False, namespace="hybrid")
    bundle = {key: amount for key, amount in here.bundle.items() if amount}
    group = placement_group(
        [bundle] * len(here.slots),
        strategy="STRICT_SPREAD" if len(here.slots) > 1 else "STRICT_PACK",
        name=name,
        bundle_label_selector=[{"ray.io/node-id": node_id} for node_id, _ in here.slots],
    )
    ray.get(group.ready())
    strategy = PlacementGroupSchedulingStrategy(
        group, placement_group_bundle_index=0, placement_group_capture_child_tasks=True
    )
    # The driver of a plain job uses the GPUs itself; that of a gang leaves them to its tasks.
    gpus = 0.0 if here.nodes else float(here.bundle.get("GPU", 0.0))
    runner: Any = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=0)(_Runner)
    actor = runner.options(scheduling_strategy=strategy, max_concurrency=2).remote()
    pid: int = ray.get(actor.pid.remote())

    def send(number: int) -> None:
        os.kill(pid, number)

    def end(_number: int, _frame: FrameType | None) -> None:
        send(signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    with messenger(send):
        try:
            code: int = ray.get(actor.run.remote(program, str(Path.cwd()), _output(), name))
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
    is_python = len(words) > 1 and Path(words[0]).name in _PYTHONS
    is_file = is_python and ((words[1] == "-m" and len(words) > 2) or not words[1].startswith("-"))
    if not is_file or any(word in ("&&", "||", "|", ";", "&") for word in words):
        raise CommandError(
            f"a job that holds nodes (--nodes, or --site onprem with --gpus) runs inside a "
            f"placement group, which only a Python program can: write `python train.py ...` or "
            f"`python -m package ...`, not {command!r}"
        )
    return words[1:]


def _output() -> str:
    """Return the file that the wrapper writes to; its program on this machine writes there, too."""
    return str(Path("/proc/self/fd/1").readlink())


class _Runner:
    """Runs the user's program inside a worker of the group."""

    def pid(self) -> int:
        """Return this process."""
        return os.getpid()

    def run(self, program: list[str], folder: str, output: str, name: str) -> int:
        """Run a Python program as the interpreter would; return its exit code."""
        import ray

        if Path(output).is_file():
            file = os.open(output, os.O_WRONLY | os.O_APPEND)
            os.dup2(file, 1)
            os.dup2(file, 2)
        os.environ[GROUP] = name
        os.chdir(folder)
        ray.init = lambda *_args, **_named: ray.get_runtime_context()  # it is connected already
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

    Raises:
        RuntimeError: This process belongs to no such job.
    """
    from ray.util import get_placement_group

    name = ENVIRONMENT.get(GROUP, "")
    if not name:
        raise RuntimeError("this is no gang: submit the job with nodes, such as --nodes 2 --gpus 8")
    return get_placement_group(name)

"""Whether this machine is what its cluster expects, looked at before it joins.

A node with another Ray, another Python or a GPU that no driver shows would fail later, after
minutes that cost money, and with words that do not say why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from hybrid.node import cuda
from hybrid.node.orders import Expected

PROBE_S = 60.0
"""How long an interpreter may take to say what it has: its disk may be cold."""

DRIVER_S = 30.0
"""How long one nvidia-smi may take. It loads the driver; one that hangs never answers."""

_AGAIN_S = 3.0
_PROBE = """\
import json, sys
sys.path = [path for path in sys.path if path]
from importlib import metadata
try:
    ray = metadata.version("ray")
except metadata.PackageNotFoundError:
    ray = ""
print("\\n" + json.dumps({"python": "%d.%d.%d" % sys.version_info[:3], "ray": ray}))
"""
_SMI = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
_DRIVER = re.compile(r"[0-9]+(\.[0-9]+)*")
_PASSWORD = re.compile(r"//[^/@\s]+@")


class UnfitError(Exception):
    """This machine cannot join; the message says what was found, expected, and what to do."""


class Outcome(NamedTuple):
    """How a command ended.

    Attributes:
        code: Its exit code; `None` when it took too long or could not be started.
        words: The end of what it wrote, as it is shown, or why it could not be started.
        text: More of that, to read something from.
    """

    code: int | None
    words: str
    text: str = ""


@dataclass
class Preflight:
    """Looks at the machine in the order in which an answer is cheap.

    Attributes:
        expected: From the orders.
        python: The interpreter that is to run Ray.
        run: Runs a command for at most so many seconds.
        say: Says why it waits; `""` for nothing.
        say_installing: Says that Ray is being installed.
        pause: Waits so many seconds.
    """

    expected: Expected
    python: str
    run: Callable[[Sequence[str], float], Outcome]
    say: Callable[[str], None]
    say_installing: Callable[[], None]
    pause: Callable[[float], None]
    _found: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Return when the machine is fit. Raises `UnfitError`."""
        self._probe()
        self._check_python()
        self._check_gpus()
        self._check_ray()

    def _probe(self) -> None:
        done = self.run([self.python, "-c", _PROBE], PROBE_S)
        found = list(_answers(done.text)) if done.code == 0 else []
        if not found:
            raise UnfitError(
                f"{self.python} of this image does not run ({done.words}): use an image that has "
                f"Python {self.expected.python} and Ray {self.expected.ray} there, or set the "
                "provider's `python` to where they are"
            )
        self._found = found[-1]

    def _check_python(self) -> None:
        wanted, found = self.expected.python, self._found["python"]
        if wanted and found.split(".")[:2] != wanted.split("."):
            raise UnfitError(
                f"this image has Python {found} and the cluster has {wanted}: use an image whose "
                f"{self.python} is Python {wanted}, or set the provider's `python` to one that is"
            )

    # --- GPUs ------------------------------------------------------------------------------

    def _check_gpus(self) -> None:
        if not self.expected.gpus:
            return
        waited_s = 0.0
        # Some images install their driver while they boot.
        while problem := self._gpu_problem():
            if waited_s >= self.expected.gpus_within_s:
                raise UnfitError(problem)
            self.say(problem)
            self.pause(_AGAIN_S)
            waited_s += _AGAIN_S
        self.say("")
        self._check_cuda()

    def _check_cuda(self) -> None:
        served = cuda.served_by_driver(self.run(cuda.DRIVER, DRIVER_S).text)
        compiler = cuda.of_compiler(self.run(cuda.NVCC, DRIVER_S).text)
        brought = (compiler,) if compiler else cuda.libraries()
        if problem := cuda.trouble(served, brought, self.expected.min_cuda):
            raise UnfitError(
                f"the CUDA of this image does not fit: {problem}: use an image with a newer "
                "driver or an older CUDA, or lower the provider's `min_cuda`"
            )

    def _gpu_problem(self) -> str:
        done = self.run(_SMI, DRIVER_S)
        lines = map(str.strip, done.text.splitlines())
        drivers = [line for line in lines if _DRIVER.fullmatch(line)]
        wanted = self.expected.gpus
        if done.code != 0 or not drivers:
            return (
                f"no GPU is seen on this machine (nvidia-smi: {done.words}) and its offer has "
                f"{wanted}: use an image with the NVIDIA driver"
            )
        if len(drivers) < wanted:
            return (
                f"nvidia-smi shows {len(drivers)} GPUs on this machine and its offer has {wanted}: "
                "correct `accelerators` of the pool, or end the machine if one is broken"
            )
        least, oldest = self.expected.min_driver, min(drivers, key=_numbers)
        if least and _numbers(oldest) < _numbers(least):
            return (
                f"this image has NVIDIA driver {oldest} and at least {least} is expected: use "
                "an image with a newer driver, or lower the provider's `min_driver`"
            )
        return ""

    # --- Ray -------------------------------------------------------------------------------

    def _check_ray(self) -> None:
        if not (problem := self._ray_problem()):
            return
        install = self.expected.install
        if not install:
            raise UnfitError(
                f"{problem}: install ray[default]=={self.expected.ray} in {self.python}, use "
                "another image, or allow it with the provider's `install_ray: true`"
            )
        self.say_installing()
        limit_s = self.expected.install_limit_s
        done = self.run(install, limit_s)
        if done.code != 0:
            what = f"did not finish in {limit_s:g} s" if done.code is None else "failed"
            raise UnfitError(
                f"{problem}, and installing it {what}; its last words: "
                f"{_PASSWORD.sub('//***@', done.words)}: see that this machine reaches a package "
                "index, or use an image that has it"
            )
        self._probe()
        if problem := self._ray_problem():
            raise UnfitError(f"{problem}, though pip said that it installed it: use another image")

    def _ray_problem(self) -> str:
        wanted, found = self.expected.ray, self._found["ray"]
        if not wanted or wanted == found:
            return ""
        has = f"Ray {found}" if found else f"no Ray in {self.python}"
        return f"this image has {has} and the cluster has {wanted}"


def _answers(text: str) -> Iterator[dict[str, str]]:
    """Yield what `_PROBE` printed, among whatever else the image's start-up files print."""
    for line in text.splitlines():
        with suppress(ValueError, TypeError, KeyError):
            content = json.loads(line)
            yield {name: str(content[name]) for name in ("python", "ray")}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))

"""Whether a host may join, and what to repair: one finding for each thing that was looked at."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.adapters.ssh_fleet.choosing import Choice, choose, described
from hybrid.adapters.ssh_fleet.facts import Facts, Gpus
from hybrid.adapters.ssh_fleet.refusals import NoPythonError, SshError
from hybrid.adapters.ssh_fleet.sharing import shared
from hybrid.core.quantity import GpuRequest
from hybrid.node import cuda

_GIB = 2**30
_DISK_FAIL_GIB, _DISK_WARN_GIB = 0.5, 5.0
_FILES_FAIL = 2_000  # of the node program and a node's first minutes, with room for work
_NODE_GIB = 0.25  # resident memory of an idle Ray node, measured
_CLOCK_WARN_S = 5.0
REFUSED = "refused"
"""A machine is there, but nothing listens on the port."""

CHECKS = ("ssh", "python", "ray", "gpus", "disk", "memory", "clock", "out", "in", "machine")
"""In the order to repair them."""


@dataclass(frozen=True)
class Finding:
    """What was found about one thing.

    Attributes:
        check: One of `CHECKS`.
        state: `ok`, `warn` (works, but), `fail` or `skip` (not looked at).
        remedy: What to do; `""` when all is well.
        is_blocking: The host must not join like this.
    """

    check: str
    state: str
    found: str
    remedy: str = ""
    is_blocking: bool = False


@dataclass(frozen=True)
class Wanted:
    """What a host must be to join.

    Attributes:
        python: Path of its interpreter, as configured.
        gpus: GPUs of the configuration.
        is_auto: It takes whatever GPUs are there.
        mps_clients: Among how many jobs each GPU is shared by MPS; 0 for no MPS.
        mig: Profile of the MIG devices that are its GPUs; `""` for whole cards.
        min_driver, min_cuda: What its driver must be, and must serve; `""` for any.
        object_store_bytes: Of the node; `None` leaves it to Ray.
        ports: What it must reach, in words, by name.
        is_head_up: The head answers; before, a port that refuses says nothing.
    """

    address: str
    python_version: str
    ray_version: str
    python: str = "python3"
    gpus: GpuRequest | None = None
    is_auto: bool = False
    mps_clients: int = 0
    mig: str = ""
    min_driver: str = ""
    min_cuda: str = ""
    object_store_bytes: int | None = None
    ports: Mapping[str, str] = field(default_factory=dict)
    is_head_up: bool = True

    def choose(self, gpus: Gpus) -> Choice:
        """Return which of its GPUs a host brings, and how they are shared."""
        choice = choose(gpus, self.gpus, is_auto=self.is_auto)
        return shared(choice, gpus, mps_clients=self.mps_clients, mig=self.mig)


def judge(facts: Facts, wanted: Wanted) -> Sequence[Finding]:
    """Return a finding for each check but `ssh` and `machine`."""
    return [
        _python(facts, wanted),
        _ray(facts, wanted),
        _gpus(facts, wanted),
        _disk(facts),
        _memory(facts, wanted),
        _clock(facts),
        _out(facts, wanted),
        _in(facts),
    ]


def reached(facts: Facts) -> Finding:
    """Return the finding of a host that answered."""
    return Finding("ssh", "ok", f"{facts.user}@{facts.hostname}, {facts.os}, {facts.machine}")


def unjudged(error: SshError) -> Sequence[Finding]:
    """Return the findings of a host that could not be looked at."""
    fault = "python" if isinstance(error, NoPythonError) else "ssh"
    found = {check: Finding(check, "skip", "not looked at") for check in CHECKS}
    if fault == "python":
        found["ssh"] = Finding("ssh", "ok", "it lets us in")
    found[fault] = Finding(fault, "fail", error.found, error.remedy, is_blocking=True)
    return list(found.values())


def _python(facts: Facts, wanted: Wanted) -> Finding:
    here, there = wanted.python_version, facts.python_version
    found = f"{there} ({facts.python})"
    if _minor(here) == _minor(there):
        return Finding("python", "ok", found)
    return Finding(
        "python",
        "fail",
        f"{found}, but the head runs {here}",
        f"install Python {_minor(here)} there (for example `uv venv --python {_minor(here)} "
        "~/ray`) and set `python` of the host to it: work is sent as pickled code, which only "
        "the same minor version reads",
        is_blocking=True,
    )


def _ray(facts: Facts, wanted: Wanted) -> Finding:
    install = f"{shlex.quote(facts.python)} -m pip install 'ray[default]=={wanted.ray_version}'"
    if not facts.ray_version:
        return Finding("ray", "fail", "not installed", f"run there: {install}", is_blocking=True)
    if facts.ray_version == wanted.ray_version:
        return Finding("ray", "ok", facts.ray_version)
    return Finding(
        "ray",
        "fail",
        f"{facts.ray_version}, but the head runs {wanted.ray_version}",
        f"run there: {install}; every node of a cluster needs exactly the same",
        is_blocking=True,
    )


def _gpus(facts: Facts, wanted: Wanted) -> Finding:
    has = facts.gpus
    choice = wanted.choose(has)
    if choice.problem:
        return Finding("gpus", "fail", choice.problem, choice.remedy, is_blocking=True)
    driver = ", ".join(
        words
        for words in (
            f"driver {has.found[0].driver}" if has.found else "",
            f"CUDA {has.cuda}" if has.cuda else "",
        )
        if words
    )
    if not choice.taken:
        if has.found:
            return Finding(
                "gpus",
                "warn",
                f"{described(has.found)}, but the configuration gives it none",
                "write `accelerators: auto` for the host, if work may use them",
            )
        return Finding("gpus", "ok", "none, as configured")
    found = f"{described(choice.taken)}{choice.sharing}; {driver}"
    if problem := _driver_problem(has, wanted):
        remedy = "install a newer driver there, or lower onprem.min_driver or min_cuda"
        return Finding("gpus", "fail", f"{found}: {problem}", remedy, is_blocking=True)
    if problem := cuda.trouble(has.cuda, filter(None, [has.compiler])):
        remedy = "install a newer driver there, or an older CUDA"
        return Finding("gpus", "warn", f"{found}: {problem}", remedy)
    if len(choice.types) > 1:
        return Finding(
            "gpus",
            "warn",
            f"{found}: of mixed types, so work that asks for one may be given another",
            f"to use one type only, write for example accelerators: {_example(choice.types)}",
        )
    left = len(has.found) - len(choice.taken)
    return Finding("gpus", "ok", f"{found}; {left} more left alone" if left else found)


def _driver_problem(has: Gpus, wanted: Wanted) -> str:
    least = wanted.min_driver
    drivers = [gpu.driver for gpu in has.found]
    if least and min(map(cuda.numbers, drivers)) < cuda.numbers(least):
        return f"at least driver {least} is expected"
    return cuda.trouble(has.cuda, (), wanted.min_cuda)


def _example(types: Mapping[str, int]) -> str:
    name, count = max(types.items(), key=lambda item: item[1])
    return f"{name}:{count}"


def _disk(facts: Facts) -> Finding:
    free_by_folder = {name: free / _GIB for name, free in facts.disk_free_bytes.items()}
    found = ", ".join(f"{free:.1f} GiB free in {name}" for name, free in free_by_folder.items())
    if problem := _unwritable(facts):
        return Finding("disk", "fail", *problem, is_blocking=True)
    least = min(free_by_folder.values(), default=0.0)
    if least < _DISK_FAIL_GIB:
        remedy = "make room there: Ray's logs and objects need it"
        return Finding("disk", "fail", found, remedy, is_blocking=True)
    full = [name for name, free in facts.files_free.items() if free < _FILES_FAIL]
    if full:
        return Finding(
            "disk",
            "fail",
            f"{found}, but room for {facts.files_free[full[0]]} more files only in {full[0]}",
            "remove files there: `df -i` counts them",
            is_blocking=True,
        )
    if facts.is_tmp_noexec:
        return Finding(
            "disk",
            "warn",
            f"{found}; nothing in /tmp can be run (noexec)",
            "mount it without noexec: what a job brings is there, its scripts and the packages of "
            "`pip`, and those do not work",
        )
    if least < _DISK_WARN_GIB:
        return Finding("disk", "warn", found, "make room: Ray's logs and spilled objects go there")
    return Finding("disk", "ok", found)


def _unwritable(facts: Facts) -> tuple[str, str] | None:
    if not facts.is_home_writable:
        return (
            f"{facts.user} cannot write {facts.home}",
            f"give {facts.user} a home folder of its own there: the node program lives in it",
        )
    if not facts.is_tmp_writable:
        return (
            f"{facts.user} cannot write /tmp",
            "run there: `chmod 1777 /tmp`, and see that it is not mounted read-only: Ray has its "
            "files there",
        )
    return None


def _memory(facts: Facts, wanted: Wanted) -> Finding:
    if facts.memory_available_bytes is None or facts.shm_free_bytes is None:
        return Finding("memory", "warn", "unknown", "see that /proc and /dev/shm are mounted there")
    free, shm = facts.memory_available_bytes / _GIB, facts.shm_free_bytes / _GIB
    found = f"{free:.1f} GiB available, {shm:.1f} GiB in /dev/shm, {facts.cpu_count} CPUs"
    store = (wanted.object_store_bytes or 0) / _GIB
    if free < _NODE_GIB + store:
        return Finding(
            "memory", "warn", found, "end other programs there, or lower ray.object_store"
        )
    if shm < store:
        return Finding(
            "memory", "warn", found, "enlarge /dev/shm there (docker: --shm-size); Ray is slow else"
        )
    return Finding("memory", "ok", found)


def _clock(facts: Facts) -> Finding:
    if facts.clock_ahead_s is None:
        return Finding("clock", "skip", "not measured")
    off_s = facts.clock_ahead_s
    if abs(off_s) < _CLOCK_WARN_S:
        return Finding("clock", "ok", f"{off_s:+.1f} s")
    side = "ahead of" if off_s > 0 else "behind"
    return Finding(
        "clock",
        "warn",
        f"{abs(off_s):.0f} s {side} this machine's; it joins all the same, since Ray measures time "
        "on each machine by itself, but times in logs and drain deadlines are off by that",
        "switch on time synchronisation there: `timedatectl set-ntp true`",
    )


def _out(facts: Facts, wanted: Wanted) -> Finding:
    if not facts.dials:
        return Finding("out", "skip", "nothing to reach yet")
    broken = {
        name: why
        for name, why in facts.dials.items()
        if why and (wanted.is_head_up or why != REFUSED)
    }
    if not broken:
        return Finding(
            "out", "ok", f"reaches {', '.join(wanted.ports[name] for name in facts.dials)}"
        )
    found = "; ".join(f"{wanted.ports[name]}: {why}" for name, why in broken.items())
    return Finding(
        "out",
        "fail",
        f"it does not reach {found}",
        "open these ports of this machine for it (firewall, security group), and see that "
        "head.address is an address that it can reach",
        is_blocking="gcs" in broken,
    )


def _in(facts: Facts) -> Finding:
    if not facts.node_ip:
        return Finding(
            "in", "fail", "it has no way to the head", "see its routes: `ip route` there"
        )
    problems = {**dict.fromkeys(facts.unopened, "no free port"), **facts.unreached}
    if not problems:
        return Finding("in", "ok", f"{facts.node_ip} can be reached")
    found = "; ".join(f"{name}: {why}" for name, why in problems.items())
    return Finding(
        "in",
        "fail",
        f"{facts.node_ip} cannot be reached from here on {found}",
        "open ports 20000-29999 (and ray.worker_ports, or all from 1024 when it is auto) of the "
        "host for this machine and the other nodes",
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])

"""The checks of `hybrid doctor`. None imports Ray or changes anything."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.cli import closing, controller, words
from hybrid.cli.version import installed
from hybrid.client import discover
from hybrid.core.errors import HybridError

if TYPE_CHECKING:
    from hybrid.settings import Settings

_GIB = 2**30
_HEAD_GIB, _NODE_GIB = 1.2, 0.25  # resident memory of an idle Ray head and node, measured
_DISK_FAIL_GIB, _DISK_WARN_GIB = 0.5, 5.0
_PYTHON = (3, 11)
_SHM = "/dev/shm"  # noqa: S108 - it is this very folder
_SECRETS = ("api_token", "ray_token", "join_secret")


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        state: `ok`, `warn` (works, but), `fail` (repair it) or `skip` (not looked at).
        found: What was found.
        remedy: What to do; `""` when all is well.
    """

    name: str
    state: str
    found: str
    remedy: str = ""


def all_checks(file: Path | None, cluster: str) -> Sequence[Check]:
    """Return every finding, in the order to repair them.

    Args:
        file: The configuration to judge the machine by.
        cluster: Name of the running cluster, when several run.
    """
    found = [_python(), _ray()]
    settings, about_config = _config(file)
    found.append(about_config)
    record = _record(settings, cluster)
    found.append(_controller(record, settings, cluster))
    if settings is None:
        return found
    is_running = record is not None and record.is_alive
    found.append(_ports(settings, is_running=is_running))
    found.append(_state_folder(settings.state_path))
    found.append(_tokens(settings.state_path))
    found.append(_shared_memory(settings))
    found.append(_memory(settings, is_running=is_running))
    found.append(_disk(settings.state_path))
    return found


def _python() -> Check:
    version = platform.python_version()
    if tuple(int(part) for part in platform.python_version_tuple()[:2]) >= _PYTHON:
        return Check("python", "ok", version)
    return Check("python", "fail", version, "install Python 3.11 or newer")


def _ray() -> Check:
    here, wanted = installed("ray"), _pinned_ray()
    if here is None:
        return Check("ray", "fail", "not installed", f"pip install 'ray[default]=={wanted or '2'}'")
    if wanted is None:
        return Check(
            "ray", "warn", f"{here}; the pinned version is unknown", "pip install hybrid-burst"
        )
    if here != wanted:
        return Check(
            "ray",
            "fail",
            f"{here}, but {wanted} is pinned",
            f"pip install 'ray[default]=={wanted}': every node must run the same",
        )
    return Check("ray", "ok", here)


def _pinned_ray() -> str | None:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needs = requires("hybrid-burst") or []
    except PackageNotFoundError:
        project = Path(__file__).parents[2] / "pyproject.toml"  # a checkout, not installed
        needs = re.findall(r'"(ray\[[^"]+)"', project.read_text()) if project.exists() else []
    pins = [match[1] for need in needs if (match := re.match(r"ray\[.*?\]==([\w.]+)", need))]
    return pins[0] if pins else None


def _config(file: Path | None) -> tuple[Settings | None, Check]:
    from hybrid.cli.config import load

    try:
        settings = load(file)
    except HybridError as error:
        return None, Check("configuration", "fail", str(error), "edit the file; then try again")
    warnings = settings.warnings()
    if warnings:
        return settings, Check(
            "configuration", "warn", "; ".join(warnings), "see docs, or leave it"
        )
    return settings, Check("configuration", "ok", settings.source)


def _record(settings: Settings | None, cluster: str) -> discover.Record | None:
    if cluster:
        return discover.read_record(discover.state_dir_of(cluster))
    return discover.read_record(settings.state_path) if settings is not None else None


def _controller(record: discover.Record | None, settings: Settings | None, cluster: str) -> Check:
    name = "controller"
    if record is None:
        which = cluster or (settings.name if settings is not None else "")
        return Check(name, "skip", f"cluster {which} is not running" if which else "not looked at")
    if not record.is_alive:
        left = words.count(len(closing.of_folder(record.state_dir).left()), "thing")
        found = f"it died (pid {record.pid}); {left} of it left here"
        return Check(name, "fail", found, "`hybrid up` goes on, `hybrid down` cleans up")
    health = controller.health(record.url)
    log = record.state_dir / controller.LOG_NAME
    if health is None:
        return Check(
            name, "fail", f"pid {record.pid} does not answer at {record.url}", f"see {log}"
        )
    if health.state == "ready":
        return Check(name, "ok", f"ready at {record.url}")
    state = "warn" if health.state in ("starting", "closing") else "fail"
    return Check(name, state, f"{health.state} {health.phase}".strip(), f"see {log}")


def _ports(settings: Settings, *, is_running: bool) -> Check:
    fixed = [
        ("head.port", settings.head.port),
        ("head.dashboard_port", settings.head.dashboard_port),
        ("head.client_port", settings.head.client_port),
        ("controller.port", settings.controller.port),
    ]
    numbers = [(name, port) for name, port in fixed if isinstance(port, int)]
    if is_running:
        return Check("ports", "skip", "in use by the running cluster")
    api_host = settings.controller.host
    taken = [
        f"{name} {port}"
        for name, port in numbers
        if not _is_free(port, api_host if name.startswith("controller") else "")
    ]
    if taken:
        return Check(
            "ports", "fail", f"taken: {', '.join(taken)}", "`ss -ltnp` shows by whom; or set `auto`"
        )
    return Check("ports", "ok", f"{len(numbers)} fixed, all free" if numbers else "all automatic")


def _is_free(port: int, host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def _nearest(path: Path) -> Path:
    """Return a folder, or the nearest one above it that exists and can be seen by this user."""
    return next(folder for folder in (path, *path.parents) if _is_seen(folder))


def _is_seen(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # below a folder of another user
        return False


def _may_use(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=True)


def _state_folder(path: Path) -> Check:
    name = "state folder"
    existing = _nearest(path)
    if not _may_use(existing):
        remedy = "give this user write access, or set state_dir or HYBRID_HOME"
        return Check(name, "fail", f"{existing} cannot be written", remedy)
    if existing == path and path.stat().st_mode & 0o077:
        return Check(name, "warn", f"{path} is open to others", f"chmod 700 {path}")
    return Check(name, "ok", str(path) if existing == path else f"{path} (will be made)")


def _tokens(path: Path) -> Check:
    existing = _nearest(path)
    if not _may_use(existing):
        found = f"unknown, {existing} cannot be looked into"
        return Check("secrets", "fail", found, "run this as its user")
    files = [path / name for name in _SECRETS if (path / name).exists()]
    loose = [str(file) for file in files if file.stat().st_mode & 0o077]
    if loose:
        names = " ".join(loose)
        return Check("secrets", "fail", f"readable by others: {names}", f"chmod 600 {names}")
    if not files:
        return Check("secrets", "skip", "none yet")
    return Check("secrets", "ok", f"{len(files)} files, readable by this user only")


def _node_count(settings: Settings) -> int:
    """Return how many nodes may share this machine at most: head, hosts, local instances."""
    pools = settings.clouds.pools if settings.clouds else ()
    local = sum(pool.max_nodes or 0 for pool in pools if pool.provider == "local")
    cap = settings.caps.node_count
    return (
        1
        + sum(h.is_local for h in settings.onprem.hosts)
        + (local if cap is None else min(local, cap))
    )


def _shared_memory(settings: Settings) -> Check:
    name = "shared memory"
    store = settings.ray.store_bytes(is_shared=True)
    try:
        free = shutil.disk_usage(_SHM).free
    except OSError as error:
        return Check(name, "warn", f"no {_SHM} ({error.strerror})", "mount a tmpfs there")
    if not isinstance(store, int):
        return Check(name, "ok", f"{free / _GIB:.1f} GiB free in {_SHM}")
    count = _node_count(settings)
    need = store * count
    found = f"{free / _GIB:.1f} GiB free in {_SHM}, {need / _GIB:.1f} GiB for {count} nodes"
    if free < need:
        remedy = "enlarge it (docker: --shm-size), or lower ray.object_store; Ray is slow without"
        return Check(name, "warn", found, remedy)
    return Check(name, "ok", found)


def _memory(settings: Settings, *, is_running: bool) -> Check:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return Check("memory", "skip", "unknown on this system")
    free_gib = int(re.findall(r"MemAvailable:\s+(\d+) kB", text)[0]) / 2**20
    need_gib = _HEAD_GIB + _NODE_GIB * (_node_count(settings) - 1)
    found = f"{free_gib:.1f} GiB available, about {need_gib:.1f} GiB for idle Ray nodes"
    if free_gib < need_gib and not is_running:
        return Check("memory", "warn", found, "end other programs, or configure fewer nodes")
    return Check("memory", "ok", found)


def _disk(state_dir: Path) -> Check:
    free_by_folder = dict(_free_gib(state_dir))
    found = ", ".join(f"{free:.1f} GiB free in {where}" for where, free in free_by_folder.items())
    least = min(free_by_folder.values())
    if least < _DISK_FAIL_GIB:
        return Check("disk", "fail", found, "make room: the ledger and Ray's logs need it")
    if least < _DISK_WARN_GIB:
        return Check("disk", "warn", found, "make room: Ray's logs and spilled objects go there")
    return Check("disk", "ok", found)


def _free_gib(state_dir: Path) -> Iterator[tuple[str, float]]:
    for folder in (_nearest(state_dir), Path("/tmp")):  # noqa: S108 - where Ray keeps its sessions
        yield str(folder), shutil.disk_usage(folder).free / _GIB

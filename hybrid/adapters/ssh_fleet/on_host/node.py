"""Starts and ends a Ray node on a host through the node program, which it unpacks there.

~/.hybrid/programs/HASH/hybrid/node   the node program
~/.hybrid/nodes/CLUSTER/NAME          folder of a node, see `hybrid.node.folder`; and in it
    ray_token                         the cluster's, for a start after a reboot
    program                           the folder of the node program that it uses
    kept_by                           `system` or `user`: systemd starts it after a reboot
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.node.processes import Process
    from hybrid.node.unit import Unit

_ROOT = Path("~/.hybrid").expanduser()
_SYSTEMD = Path("/run/systemd/system")  # is there when it runs the machine
_START_S = 20.0
_WORKING = ("booting", "joining", "starting", "running")


def main(
    verb: str,
    cluster_id: str,
    name: str,
    parcel: dict[str, str] | None = None,
    orders: dict[str, object] | None = None,
    ray_token: str = "",
) -> dict[str, object]:
    """Do one of `look`, `join` and `leave`, and return how the node is then."""
    folder = _ROOT / "nodes" / cluster_id / name
    if verb == "look":
        return _look(folder)
    if parcel is None:
        raise ValueError("the node program is missing")
    with _locked():
        if verb == "leave":
            return _leave(folder, parcel)
        return _join(folder, parcel, orders or {}, ray_token)


def _look(folder: Path) -> dict[str, object]:
    program = _text(folder / "program")
    if not (folder / "node.json").exists() or not _is_whole(program):
        return {"phase": None}
    _load(program)
    from hybrid.node.folder import Folder

    node = Folder(folder)
    status, supervisor = node.status(), node.supervisor()
    phase = str(status.phase) if status else "booting"
    problem = status.problem if status else ""
    if supervisor is None and phase in _WORKING:
        problem = "its processes are gone: they were killed, or the machine was started anew"
    raylet_pid = status.raylet_pid if status else None
    return {
        "phase": phase,
        "is_alive": supervisor is not None,
        "problem": "" if node.is_stop_ordered else problem,
        "pids": [pid for pid in (supervisor.pid, raylet_pid) if pid] if supervisor else [],
        "kept_by": _text(folder / "kept_by"),
    }


def _join(
    folder: Path, parcel: dict[str, str], orders: dict[str, object], ray_token: str
) -> dict[str, object]:
    """Start it unless it runs; what an earlier run left behind is ended first."""
    program = _unpack(**parcel)  # first, since it may be the one of a node that runs, and damaged
    found = _look(folder)
    if found.get("is_alive") and found["phase"] in _WORKING:
        return found
    _load(program)
    from hybrid.node import starting, stopping
    from hybrid.node.folder import Folder, write_json

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (folder / "node.json").exists():
        _keep_tag(folder)
        _refuse_if_left(stopping.stop(folder))
    _write(folder / "ray_token", ray_token)
    _write(folder / "program", program)
    orders["ray_token_file"] = str(folder / "ray_token")
    write_json(folder / "node.json", orders)
    node = Folder(folder)
    node.take_back_stop()
    unit = _unit(folder, node.orders().tag, program)
    if unit is not None:
        if unit.start() and _wait_for(lambda: node.supervisor() is not None):
            _write(folder / "kept_by", unit.kind)
            return _look(folder)
        unit.remove()
    _write(folder / "kept_by", "")
    starting.start(folder, orders)
    return _look(folder)


def _leave(folder: Path, parcel: dict[str, str]) -> dict[str, object]:
    if (folder / "node.json").exists():
        _load(_unpack(**parcel))
        from hybrid.node import stopping
        from hybrid.node.folder import Folder

        _keep_tag(folder)
        tag = Folder(folder).tag()
        _refuse_if_left(stopping.stop(folder))
        if (unit := _unit(folder, tag, "")) is not None:
            unit.remove()
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    _tidy()
    return _look(folder)


def _keep_tag(folder: Path) -> None:
    """Write down how the node's processes are marked where a power cut damaged what said so."""
    from hybrid.node.folder import BadFolderError, Folder, write_json

    try:
        Folder(folder).tag()
    except BadFolderError:
        write_json(folder / "pid.json", {"tag": f"{folder.parent.name}/{folder.name}"})


def _refuse_if_left(left: Sequence[Process]) -> None:
    if left:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in left)
        raise SystemExit(f"processes that would not end: {names}")


def _unit(folder: Path, tag: str, program: str) -> Unit | None:
    """Return what has the node started again after a reboot, where there is systemd."""
    from hybrid.node.unit import Unit

    if not _SYSTEMD.is_dir():
        return None
    make = Unit.of_system if os.getuid() == 0 else Unit.of_user
    return make(folder, tag, program)


# --- files ----------------------------------------------------------------------------------


@contextmanager
def _locked() -> Iterator[None]:
    """Keep others of ours away for as long as files are changed."""
    while True:
        try:
            _ROOT.mkdir(mode=0o700, exist_ok=True)
            lock = (_ROOT / "lock").open("a")
        except (FileNotFoundError, FileExistsError):  # its folder was removed by one that left
            if _ROOT.is_file() or _ROOT.is_symlink():
                raise SystemExit(f"{_ROOT} is not a folder; move it away") from None
            if not _ROOT.parent.is_dir():
                raise SystemExit(f"the home folder {_ROOT.parent} is not there") from None
            continue
        except OSError:
            lock = (_ROOT / "lock").open()  # a disk that can only be read: processes can be ended
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock.fileno()).st_nlink == 0:
                continue  # while we waited, so others would not meet us at it
            yield
            return


def _unpack(name: str, content: str) -> str:
    """Return the folder of the node program, which is made unless it is there."""
    place = _ROOT / "programs" / name
    if not _is_whole(str(place)):
        draft = place.with_name(f".{name}.{os.getpid()}")
        packed = io.BytesIO(base64.b64decode(content))
        try:
            with tarfile.open(fileobj=packed, mode="r:gz") as tar:
                tar.extractall(draft)  # noqa: S202  # we packed it ourselves
            shutil.rmtree(place, ignore_errors=True)
            draft.rename(place)
        except OSError:  # no room: a half must not take what there is
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return str(place)


def _is_whole(program: str) -> bool:
    """Return whether a program's files are what its name says: a power cut can empty them."""
    place = Path(program or "/no")
    mark = hashlib.sha256()  # as in `parcel`
    for name in sorted(str(path.relative_to(place)) for path in place.glob("hybrid/**/*.py")):
        content = (place / name).read_bytes()
        mark.update(f"{name}\0{len(content)}\0".encode())
        mark.update(content)
    return mark.hexdigest()[:16] == place.name


def _load(program: str) -> None:
    """Have what is imported from now on come from this program, and not from another version."""
    if sys.path[:1] != [program]:
        for name in [name for name in sys.modules if name.partition(".")[0] == "hybrid"]:
            del sys.modules[name]
        sys.path.insert(0, program)


def _tidy() -> None:
    """Remove what no node uses any more."""
    nodes, programs = _ROOT / "nodes", _ROOT / "programs"
    used = {_text(path) for path in nodes.glob("*/*/program")}
    for program in programs.glob("*"):
        if str(program) not in used:
            shutil.rmtree(program, ignore_errors=True)
    for folder in (*nodes.glob("*"), nodes, programs):
        with suppress(OSError):
            folder.rmdir()
    if [path.name for path in _ROOT.iterdir()] == ["lock"]:
        # Nothing of ours is left, and nobody is between us: we hold the lock.
        (_ROOT / "lock").unlink()
        with suppress(OSError):
            _ROOT.rmdir()


def _write(path: Path, content: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    draft.replace(path)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _wait_for(is_true: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s:
        if is_true():
            return True
        time.sleep(0.05)
    return False

"""Looks at a host and changes nothing on it. Runs on any Python from 3.8 up."""

from __future__ import annotations

import os
import platform
import re
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_say: Callable[[str, object], None] = globals().get("say", print)  # given by the sender

_DIAL_S = 3.0
_LISTEN_S = 3.5
_DRIVER_S = 10.0  # a driver that hangs makes nvidia-smi hang
_QUERY = "--query-gpu=uuid,name,memory.total,driver_version"
_MPS = "nvidia-cuda-mps-control"
_WHOLE = re.compile(r"GPU [0-9]+: .*\(UUID: (GPU-[^)]+)\)")
_PART = re.compile(r"\s+MIG (\S+)\s+Device\s+[0-9]+: \(UUID: (MIG-[^)]+)\)")
_TMP = "/tmp"  # noqa: S108  # where Ray has its files
_NVIDIA, _DISPLAY = "0x10de", "0x03"


def main(
    head_ip: str, dial: dict[str, list[object]], listen: dict[str, list[int]]
) -> dict[str, object]:
    """Return facts.

    Args:
        head_ip: Where the head is, to learn by which of its addresses this host gets there.
        dial: Names, and the host and port that each must reach.
        listen: Names, and the first and last port that each may use; 0 for any. They are told
            in a note, and whoever sends this dials them meanwhile.
    """
    ip = _own_ip(head_ip)
    opened = {name: _open_port(*ports) for name, ports in listen.items()}
    servers = {name: server for name, server in opened.items() if server is not None}
    ports = {name: server.getsockname()[1] for name, server in servers.items()}
    _say("note", {"now_s": time.time(), "node_ip": ip, "ports": ports})
    heard = threading.Thread(target=_hear, args=(list(servers.values()),), daemon=True)
    dials = {name: _Dial(str(host), int(str(port))) for name, (host, port) in dial.items()}
    for thread in (heard, *dials.values()):
        thread.start()
    facts = _look()
    for dialled in dials.values():
        dialled.join()
    heard.join()
    facts["node_ip"] = ip
    facts["unopened"] = sorted(set(listen) - set(servers))
    facts["dials"] = {name: dialled.problem for name, dialled in dials.items()}
    return facts


def _look() -> dict[str, object]:
    home = Path.home()
    folders = (str(home), _TMP)
    return {
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "hostname": socket.gethostname(),
        "user": _user_name(),
        "uid": os.getuid(),
        "home": str(home),
        "is_home_writable": os.access(home, os.W_OK | os.X_OK),
        "machine_id": _read("/etc/machine-id"),
        "boot_id": _read("/proc/sys/kernel/random/boot_id"),
        "network": _link("/proc/self/ns/net"),
        "python": sys.executable,
        "python_version": platform.python_version(),
        "ray_version": _ray_version(),
        "cpu_count": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory("MemTotal"),
        "memory_available_bytes": _memory("MemAvailable"),
        "disk_free_bytes": {f: free for f in folders if (free := _disk_free(f)) is not None},
        "files_free": {f: free for f in folders if (free := _files_free(f)) is not None},
        "is_tmp_writable": os.access(_TMP, os.W_OK | os.X_OK),
        "is_tmp_noexec": _is_noexec(_TMP),
        "shm_free_bytes": _disk_free("/dev/shm"),  # noqa: S108  # it is this very folder
        "gpus": _gpus(),
    }


# --- the network ----------------------------------------------------------------------------


def _own_ip(head_ip: str) -> str:
    """Return the address that Ray will choose: the one on the way to the head."""
    try:
        family = socket.AF_INET6 if ":" in head_ip else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((head_ip, 9))  # sends nothing
            return str(way.getsockname()[0])
    except OSError:
        return ""


def _open_port(first: int, last: int) -> socket.socket | None:
    for port in range(first, last + 1):
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("", port))
            server.listen(8)
        except OSError:
            server.close()
        else:
            return server
    return None


def _hear(servers: list[socket.socket]) -> None:
    """Wait until each was called, or nobody will."""
    end_s = time.monotonic() + _LISTEN_S
    silent = list(servers)
    while silent and (left_s := end_s - time.monotonic()) > 0:
        for server in select.select(silent, [], [], left_s)[0]:
            server.accept()[0].close()
            silent.remove(server)
    for server in servers:
        server.close()


class _Dial(threading.Thread):
    def __init__(self, host: str, port: int) -> None:
        super().__init__(daemon=True)
        self._where = (host, port)
        self.problem = "no answer"

    def run(self) -> None:
        try:
            socket.create_connection(self._where, timeout=_DIAL_S).close()
            self.problem = ""
        except (socket.timeout, TimeoutError):  # noqa: UP041  # two classes before Python 3.10
            self.problem = "no answer"
        except ConnectionRefusedError:
            self.problem = "refused"
        except OSError as err:
            self.problem = err.strerror or str(err)


# --- graphics cards -------------------------------------------------------------------------


def _gpus() -> dict[str, object]:
    """Return what nvidia-smi says, or why it says nothing."""
    program = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/bin:/bin")
    if program is None:
        return {"problem": "nvidia-smi is not there", "on_bus_count": _on_bus_count()}
    code, text = _call([program, _QUERY, "--format=csv,noheader,nounits"])
    if code != 0:
        return {"problem": text, "on_bus_count": _on_bus_count()}
    found = [gpu for line in text.splitlines() if (gpu := _gpu(line)) is not None]
    _add_parts(program, found)
    problem = "" if found else text.strip()[:300] or "nvidia-smi lists none"
    # "CUDA Version" until driver 570, "CUDA UMD Version" since.
    cuda = re.search(r"CUDA (?:UMD )?Version: *([0-9.]+)", _call([program])[1])
    return {
        "found": found,
        "cuda": cuda[1] if cuda else "",
        "compiler": _compiler(),
        "mps": shutil.which(_MPS) or shutil.which(_MPS, path="/usr/bin:/bin") or "",
        "problem": problem,
        "on_bus_count": _on_bus_count(),
    }


def _add_parts(program: str, found: list[dict[str, object]]) -> None:
    """Add to each card whether MIG is on, and its MIG devices."""
    # A query of its own: drivers from before MIG refuse the field.
    code, text = _call([program, "--query-gpu=uuid,mig.mode.current", "--format=csv,noheader"])
    lines = text.splitlines() if code == 0 else []
    on = {line.split(",")[0].strip() for line in lines if line.strip().endswith("Enabled")}
    if not on:
        return
    parts: dict[str, list[dict[str, str]]] = {}
    card = ""
    for line in _call([program, "-L"])[1].splitlines():
        part = _PART.match(line)
        if part is not None:
            parts.setdefault(card, []).append({"profile": part[1], "uuid": part[2]})
        elif (whole := _WHOLE.match(line)) is not None:
            card = whole[1]
    for gpu in found:
        uuid = str(gpu["uuid"])
        gpu["is_mig_on"] = uuid in on
        gpu["parts"] = parts.get(uuid, [])


def _compiler() -> str:
    """Return the version of CUDA's compiler, which stands for the CUDA that work is built with."""
    program = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    found = re.search(
        r"release ([0-9]+[.][0-9]+)", _call([program, "--version"])[1] if program else ""
    )
    return found[1] if found else ""


def _gpu(line: str) -> dict[str, object] | None:
    words = [word.strip() for word in line.split(",")]
    if len(words) != 4 or not words[0].startswith("GPU-"):
        return None
    uuid, name, memory, driver = words
    memory_mib = int(memory) if memory.isdigit() else None  # [N/A] where memory is shared
    return {"uuid": uuid, "name": name, "memory_mib": memory_mib, "driver": driver}


def _call(command: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_DRIVER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"nvidia-smi did not answer in {_DRIVER_S:g} s: the driver hangs"
    except OSError as err:
        return -1, f"nvidia-smi cannot be run: {err.strerror}"
    text = done.stdout.decode("utf-8", "replace")
    return done.returncode, text if done.returncode == 0 else (text.strip() or "no words")[-300:]


def _on_bus_count() -> int:
    """Return how many graphics cards of NVIDIA there are, with or without a driver."""
    devices = Path("/sys/bus/pci/devices").glob("*")
    cards = [device for device in devices if _read(device / "vendor") == _NVIDIA]
    return sum(_read(card / "class").startswith(_DISPLAY) for card in cards)


# --- the machine ----------------------------------------------------------------------------


def _ray_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("ray")
    except metadata.PackageNotFoundError:
        return ""


def _os_name() -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', _read("/etc/os-release"), re.MULTILINE)
    return match[1] if match else platform.system()


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _memory(name: str) -> int | None:
    match = re.search(name + r": +([0-9]+) kB", _read("/proc/meminfo"))
    return int(match[1]) * 1024 if match else None


def _disk_free(path: str) -> int | None:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def _files_free(path: str) -> int | None:
    """Return how many more files fit; `None` where nobody counts them."""
    try:
        about = os.statvfs(path)
    except OSError:
        return None
    return about.f_favail if about.f_files else None


def _is_noexec(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_NOEXEC)
    except OSError:
        return False


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  # Python 3.8 has no other
    except OSError:
        return ""

"""Short folders below /tmp for Ray's sockets (their paths have a limit of 107 bytes)."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_TMP = Path("/tmp")  # noqa: S108  # the only short place; ownership is checked below
_PREFIX = "hybrid-"


def own_root() -> Path:
    """Return this user's folder below /tmp, made and checked.

    Raises:
        OSError: It cannot be made, or somebody else made it first.
    """
    root = _TMP / f"{_PREFIX}{os.getuid()}"
    _make(root)
    return root


def prepare(folder: Path) -> None:
    """Make a node's temporary folder, readable by this user only.

    Raises:
        OSError: It cannot be made, or its top folder belongs to somebody else.
    """
    if is_ours(folder):
        _make(_TMP / folder.parts[2])
    for _ in range(3):  # another node that ends may remove the folder above just now
        with contextlib.suppress(FileNotFoundError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return
    raise FileNotFoundError(f"cannot make {folder}")


def remove(folder: Path) -> None:
    """Remove a node's temporary folder if it lies where ours do; never anything else.

    Raises:
        OSError: Something of it is left.
    """
    if not is_ours(folder) or not folder.exists():
        return
    from shutil import rmtree  # slow to import, and needed once

    rmtree(folder)
    with contextlib.suppress(OSError):  # other nodes still use the folder above
        folder.parent.rmdir()


def is_ours(folder: Path) -> bool:
    """Return whether a folder lies at least two levels below /tmp/hybrid-..., and no link there."""
    parts = folder.parts
    if len(parts) < 4 or parts[:2] != _TMP.parts or not _is_named(parts[2]):
        return False
    # /tmp itself may be a link; nothing below it may.
    return Path(os.path.realpath(folder)) == Path(os.path.realpath(_TMP), *parts[2:])


def _is_named(name: str) -> bool:
    return name.startswith(_PREFIX) and len(name) > len(_PREFIX)


def _make(root: Path) -> None:
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    about = root.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise PermissionError(f"{root} is not a folder of this user; remove it or have it removed")

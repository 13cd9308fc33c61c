"""Reads a text file, or says why it cannot be one."""

from __future__ import annotations

import stat
from pathlib import Path

from hybrid.settings.problem import fault

_MAX_BYTES = 1 << 20


def read_text(path: Path, source: str) -> str:
    """Return the text of a file; `source` is its name in messages.

    Raises:
        SettingsError: It cannot be read, is no ordinary file, is too long or is not UTF-8.
    """
    return _decode(_read_bytes(path, source), source)


def _read_bytes(path: Path, source: str) -> bytes:
    try:
        # A pipe or a device could block for ever, and could not be read again by the controller.
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise fault(source, "it is a folder; name the file in it, such as hybrid.yaml")
        if not stat.S_ISREG(mode):
            raise fault(source, "it is no ordinary file; write the configuration to one")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as err:
        raise fault(source, "there is no such file; check the path given") from err
    except PermissionError as err:
        raise fault(source, "it may not be read by this user; check its permissions") from err
    except (OSError, ValueError) as err:  # ValueError: a NUL in the path
        reason = getattr(err, "strerror", None) or err
        raise fault(source, f"it cannot be read: {reason}") from err
    if len(data) > _MAX_BYTES:
        raise fault(source, f"it is longer than {_MAX_BYTES >> 20} MiB; is this the right file?")
    return data


def _decode(data: bytes, source: str) -> str:
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise fault(source, "it holds a NUL byte, so it is not text; is this the right file?", line)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise fault(source, "it is not UTF-8 text; save it as UTF-8", line) from err

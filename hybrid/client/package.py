"""Packs a working directory: the same files give the same bytes, and so the same name."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid.client.ignore import Rule, default_rules, is_ignored, rules_in
from hybrid.core.errors import ConfigError

LIMIT_BYTES = 100_000_000
_DATE = (1980, 1, 1, 0, 0, 0)
_FILE_MODE = 0o100644
_PROGRAM_MODE = 0o100755
_POINTS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""Errors of a link that leads nowhere, and of a file that has just been removed."""


@dataclass(frozen=True)
class Package:
    """A zipped working directory.

    Attributes:
        name: From a hash of the content.
    """

    name: str
    content: bytes
    file_count: int


@dataclass(frozen=True)
class _File:
    path: Path
    name: str
    size: int
    is_program: bool


def pack(folder: str | Path) -> Package:
    """Return a folder as a zip file.

    Left out: what `hybrid.client.ignore` says, broken links, sockets and devices. A link to
    a file or folder is packed as what it points at.

    Raises:
        ConfigError: It is missing, unreadable or too large.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        problem = "is not a folder" if root.exists() else "does not exist"
        raise ConfigError(f"working_dir: {str(folder)!r} {problem}; pass the folder of your code")
    files = sorted(_walk(root), key=lambda file: file.name)
    _check_size(root, files)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            _add(archive, file)
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:32]
    return Package(name=f"pkg-{digest}.zip", content=content, file_count=len(files))


def _walk(root: Path) -> Iterator[_File]:
    yield from _walk_folder(root, "", default_rules(), frozenset({root.resolve()}))


def _walk_folder(
    folder: Path, name: str, rules: tuple[Rule, ...], parents: frozenset[Path]
) -> Iterator[_File]:
    """Yield the files below a folder. `parents` ends loops of links."""
    rules = (*rules, *rules_in(folder, name))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise ConfigError(f"working_dir: {folder} cannot be read ({error.strerror})") from error
    for entry in entries:
        path = f"{name}/{entry.name}" if name else entry.name
        mode = _mode(entry)
        is_folder = stat.S_ISDIR(mode)
        if is_ignored(path, rules, is_folder=is_folder):
            continue
        if is_folder:
            real = Path(entry.path).resolve()
            if real not in parents:
                yield from _walk_folder(Path(entry.path), path, rules, parents | {real})
        elif stat.S_ISREG(mode):
            yield _File(Path(entry.path), path, entry.stat().st_size, bool(mode & 0o100))


def _mode(entry: os.DirEntry[str]) -> int:
    """Return the type and mode of what an entry is or points at; 0 when that does not exist.

    Raises:
        ConfigError: It may exist, and cannot be seen.
    """
    try:
        return entry.stat().st_mode
    except OSError as error:
        if error.errno in _POINTS_NOWHERE:
            return 0
        raise ConfigError(
            f"working_dir: {entry.path} cannot be read ({error.strerror}); name it in "
            ".hybridignore, or make it readable"
        ) from error


def _check_size(root: Path, files: list[_File]) -> None:
    total = sum(file.size for file in files)
    if total <= LIMIT_BYTES:
        return
    largest = sorted(files, key=lambda file: (-file.size, file.name))[:3]
    named = ", ".join(f"{file.name} ({file.size / 1e6:.0f} MB)" for file in largest)
    raise ConfigError(
        f"working_dir: {root} holds {total / 1e6:.0f} MB, more than the {LIMIT_BYTES / 1e6:.0f} MB "
        f"that are sent; the largest: {named}. List what the job does not need in .hybridignore, "
        "and keep data on shared storage"
    )


def _add(archive: zipfile.ZipFile, file: _File) -> None:
    try:
        file.name.encode()
        content = file.path.read_bytes()
    except UnicodeEncodeError as error:
        raise ConfigError(f"working_dir: the name {file.name!r} is not UTF-8; rename it") from error
    except OSError as error:
        raise ConfigError(
            f"working_dir: {file.path} cannot be read ({error.strerror}); "
            "allow it, or list it in .hybridignore"
        ) from error
    entry = zipfile.ZipInfo(file.name, date_time=_DATE)
    entry.external_attr = (_PROGRAM_MODE if file.is_program else _FILE_MODE) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)

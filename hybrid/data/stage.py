"""Copies of a job's data on its node: resumable, checked, one for all jobs of the node."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_CHUNK_BYTES = 8 << 20
_SAY_EVERY_S = 10.0
_PARTIAL = 206


class StagingError(RuntimeError):
    """Data could not be copied; the message says which, why, and what to do."""


def stage(
    url: str,
    cache: Path,
    *,
    sha256: str = "",
    limit_bytes: int | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Return a copy of a file on this machine, made now or earlier.

    What was copied before a failure is kept, and the next call goes on there. One process copies
    and the others wait for it.

    Args:
        url: A local path, http(s), or an fsspec URL (which needs fsspec and its driver).
        cache: Folder of this node's copies.
        sha256: What the file must have; `""`: any.
        limit_bytes: Copies used longest ago go first when all are larger than this.
        say: Gets lines of progress.

    Raises:
        StagingError: It cannot be read, or is not what it should be.
    """
    cache.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(f"{url}\n{sha256}".encode()).hexdigest()[:32]
    done, part, note = (cache / f"{key}{end}" for end in (".data", ".part", ".json"))
    with _locked(cache / f"{key}.lock"):
        if done.exists() and note.exists():
            if _is_intact(done, note):
                os.utime(note)
                say(f"hybrid: {url} is on this node already")
                return done
            say(f"hybrid: the copy of {url} on this node is damaged; copying it anew")
            done.unlink()
        try:
            _copy(url, part, say)
        except (OSError, ImportError, ValueError) as error:
            raise StagingError(
                f"{url} cannot be copied to {cache}: {error}; what was copied is kept, and the "
                "next attempt goes on there"
            ) from error
        found = _digest(part)
        if sha256 and found != sha256:
            part.unlink()
            raise StagingError(f"{url} has the sha256 {found}, not {sha256}: check the job's data")
        note.write_text(json.dumps({"url": url, "size": part.stat().st_size, "sha256": found}))
        part.replace(done)
    _shrink(cache, limit_bytes, keep=key)
    return done


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_intact(done: Path, note: Path) -> bool:
    try:
        known = json.loads(note.read_text())
        is_size = known["size"] == done.stat().st_size
        return bool(is_size and known["sha256"] == _digest(done))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy(url: str, part: Path, say: Callable[[str], None]) -> None:
    at = part.stat().st_size if part.exists() else 0
    source, start = _open(url, at)
    said_s = time.monotonic()
    with source, part.open("r+b" if part.exists() else "wb") as target:
        target.truncate(start)
        target.seek(start)
        say(f"hybrid: copying {url}" + (f" from {start / 1e9:.2f} GB on" if start else ""))
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)
            if time.monotonic() - said_s >= _SAY_EVERY_S:
                said_s = time.monotonic()
                say(f"hybrid: {target.tell() / 1e9:.2f} GB of {url}")
        target.flush()
        os.fsync(target.fileno())


def _open(url: str, at: int) -> tuple[Any, int]:
    """Open a source at a byte; return it and where it truly begins."""
    if url.startswith(("http://", "https://")):
        headers = {"Range": f"bytes={at}-"} if at else {}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  # http(s) only
        try:
            answer = urllib.request.urlopen(request, timeout=60)  # noqa: S310
        except urllib.error.HTTPError as error:
            error.close()
            if at and error.code == 416:  # nothing after this byte: begin anew
                return _open(url, 0)
            raise
        return answer, at if answer.status == _PARTIAL else 0
    file: IO[bytes]
    if "://" in url and not url.startswith("file://"):
        # BOS is reached through its S3 interface.
        file = importlib.import_module("fsspec").open(url, "rb").open()
    else:
        file = Path(url.removeprefix("file://")).open("rb")  # noqa: SIM115  # the caller closes it
    # A source that became shorter than what was copied is another file.
    start = at if file.seek(0, os.SEEK_END) >= at else 0
    file.seek(start)
    return file, start


def _shrink(cache: Path, limit_bytes: int | None, *, keep: str) -> None:
    if limit_bytes is None:
        return
    sizes = {path.stem: path.stat().st_size for path in cache.glob("*.data")}
    notes = sorted(cache.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for note in notes:
        if sum(sizes.values()) <= limit_bytes:
            return
        if note.stem != keep and note.stem in sizes:
            (cache / f"{note.stem}.data").unlink(missing_ok=True)
            note.unlink(missing_ok=True)
            del sizes[note.stem]

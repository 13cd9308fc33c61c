"""What a training calls to be stopped and to go on elsewhere; see docs/checkpoints.md.

All of it is harmless outside of hybrid: nothing is ever requested, and nothing is told to anybody.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hybrid.job import messages
from hybrid.job.context import LEFT, Context, context
from hybrid.job.store import Store, store_of

_LOOK_EVERY_S = 1.0


@dataclass
class _Memory:
    """What this process learned last, so that a tight loop may ask as often as it likes."""

    looked_at_s: float = -_LOOK_EVERY_S
    is_asked: bool = False
    unsent: bytes | None = None
    is_away: bool = False


_memory = _Memory()


def checkpoint_requested() -> bool:
    """Return whether the job should save now, since it has to leave its place soon.

    Cheap: it looks at most once a second. Works in the driver, in Ray tasks and actors, and in
    workers of Ray Train. Once it is true it stays so, unless the request is withdrawn.
    """
    here = context()
    now_s = time.monotonic()
    if here is None or now_s - _memory.looked_at_s < _LOOK_EVERY_S:
        return _memory.is_asked
    _memory.looked_at_s = now_s
    try:
        if _memory.unsent is not None:
            _send(here, _memory.unsent)
        raw = _read_ask(here)
    except Exception as error:  # noqa: BLE001  # Ray's head may be away; the work goes on
        _say_away(error)
        return _memory.is_asked
    _memory.is_away = False
    ask = messages.parse_ask(raw) if raw else None
    _memory.is_asked = ask is not None and ask.why != "withdrawn"
    return _memory.is_asked


def checkpoint_saved(url: str | None = None, *, step: int | None = None) -> None:
    """Confirm a complete checkpoint: from here the job can go on if it is stopped now.

    Call it after every save, asked for or not: what was confirmed last is what a lost node costs
    nothing of. It returns at once; the job goes on until it is stopped.

    Args:
        url: Where it is; the job's checkpoint folder when not given.
        step: How far the job is, by its own count.
    """
    here = context()
    if here is None:
        return
    place = str(url or here.checkpoint_url)  # a path will do
    if len(place) > messages.LONGEST_URL:
        raise ValueError(
            f"the checkpoint's address has {len(place)} characters, more than "
            f"{messages.LONGEST_URL}: confirm a shorter one"
        )
    count = None if step is None else int(step)  # NumPy's and PyTorch's numbers, too
    note = messages.encode({"url": place, "at_s": time.time(), "step": count})
    try:
        _send(here, note)
    except Exception as error:  # noqa: BLE001  # Ray's head may be away; the work goes on
        _memory.unsent = note
        _say_away(error)


def checkpoint_exit() -> NoReturn:
    """Leave because of a request, after a save; exit code 0 would mean that all is done."""
    sys.exit(LEFT)


def checkpoint_url() -> str | None:
    """Return the folder for this job's checkpoints, an fsspec URL; `None` if there is none."""
    here = context()
    return here.checkpoint_url or None if here else None


def resume_from() -> str | None:
    """Return the checkpoint to go on from, as it was confirmed; `None` on a first start."""
    here = context()
    return here.resume_from or None if here else None


def _send(here: Context, note: bytes) -> None:
    """Tell the controller of a checkpoint, through the wrapper if it is on this machine."""
    if here.notes is None or not _is_written(here.notes / "saved", note):
        store = store_of()
        if store is not None:
            store.put(messages.saved_key(here.job_id, here.attempt), note)
    _memory.unsent = None


def _read_ask(here: Context) -> bytes | None:
    if here.notes is not None:
        try:
            return (here.notes / "ask").read_bytes()
        except FileNotFoundError:
            return None
    store: Store | None = store_of()
    return store.get(messages.ask_key(here.job_id, here.attempt)) if store else None


def _is_written(path: Path, content: bytes) -> bool:
    """Write a whole file or none; return whether it could be: the disk may be full."""
    # Each process of a training may confirm, at the same moment.
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        return False
    return True


def _say_away(error: Exception) -> None:
    """Say once that the controller cannot be told."""
    if not _memory.is_away:
        print(f"hybrid: cannot reach Ray's head, will try again: {error}", file=sys.stderr)
    _memory.is_away = True

"""Reads files of decisions; what is damaged is counted, and the rest is read."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pydantic import ValidationError

import hybrid
from hybrid.adapters.decision_files import SUFFIX
from hybrid.core.policy.params import PolicyParams
from hybrid.core.policy.record import RECORD_VERSION, Decision, RecordHead, input_hash
from hybrid.sim.traces.reading import OnPart, Tally, TraceError

LONGEST_LINE_BYTES = 2**27
"""A decision over 10,000 nodes has some 10 MB."""


@dataclass(frozen=True)
class Recorded:
    """One decision, as it was kept.

    Attributes:
        hybrid: The version of the program that made it.
    """

    decision: Decision
    params: PolicyParams
    hybrid: str


@dataclass
class RecordFiles:
    """Some files of decisions.

    Attributes:
        paths: In the order of their time.
        tallies: What could not be used, by file; filled while they are read.
    """

    paths: Sequence[Path]
    tallies: dict[Path, Tally] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path) -> RecordFiles:
        """Return a file, or all of a folder.

        Raises:
            TraceError: There is none.
        """
        if not path.exists():
            raise TraceError(
                f"there is no {path}; a controller keeps its decisions in the folder decisions of "
                "its state folder, unless controller.record is off"
            )
        if not path.is_dir():
            return cls((path,))
        paths = sorted(path.glob(f"*{SUFFIX}"))
        if not paths:
            raise TraceError(
                f"{path} has no file that ends in {SUFFIX}; name the folder decisions of a state "
                "folder, or one file of it"
            )
        return cls(paths)

    def each(self, on_part: OnPart | None = None) -> Iterator[Recorded]:
        """Yield the decisions, oldest first.

        Raises:
            TraceError: A file is no record, or of another form.
        """
        for number, path in enumerate(self.paths):
            tally = self.tallies[path] = Tally(str(path))
            yield from _decisions(path, tally)
            if on_part is not None:
                on_part((number + 1) / len(self.paths))


def _decisions(path: Path, tally: Tally) -> Iterator[Recorded]:
    lines = _lines(path, tally)
    first = next(lines, None)
    if first is None:
        return  # nothing was written before the end came, which has been counted
    head = _head(path, first[1])
    for line, text in lines:
        try:
            decision = Decision.model_validate_json(text)
        except ValidationError as error:
            what = error.errors(include_url=False)[0]
            is_json = what["type"] != "json_invalid"
            reason = "it does not fit this hybrid" if is_json else "it is damaged"
            tally.skip(line, f"{reason} ({head.hybrid} wrote it)", str(what["loc"]))
            continue
        is_ours = head.hybrid == hybrid.__version__
        if is_ours and input_hash(decision.snapshot, head.params) != decision.input:
            tally.skip(line, "it was changed after it was recorded: its hash differs")
            continue
        yield Recorded(decision, head.params, head.hybrid)


def _head(path: Path, text: bytes) -> RecordHead:
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or fields.get("kind") != "head":
        raise TraceError(f"{path}, line 1: this is no record of decisions, or its head is damaged")
    by = fields.get("hybrid")
    if fields.get("version") != RECORD_VERSION:
        raise TraceError(
            f"{path}: recorded by hybrid {by} in form {fields.get('version')}, and this is hybrid "
            f"{hybrid.__version__}, which reads form {RECORD_VERSION}; use hybrid {by} for it"
        )
    try:
        return RecordHead.model_validate(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise TraceError(
            f"{path}, line 1: {where} of its head does not fit hybrid {hybrid.__version__}; use "
            f"hybrid {by} for it"
        ) from error


def _lines(path: Path, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines and their numbers, as far as the file can be read."""
    number = 0
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if is_packed else raw
            while line := file.readline(LONGEST_LINE_BYTES):
                number += 1
                if not line.endswith(b"\n"):
                    tally.skip(number, "the file ends within this line")
                    return
                if line.strip():
                    yield number, line
    except EOFError:
        tally.keep(number + 1, "the file has no end: it is still written, or a crash cut it off")
    except (zlib.error, gzip.BadGzipFile):
        tally.skip(number + 1, "the file is damaged here, and nothing behind can be read")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from error

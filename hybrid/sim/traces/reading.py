"""Reads trace files line by line: plain or gzip, of any size, and never silently less than all.

What cannot be used is counted with its line by a `Tally`, or refused when strict. What makes the
whole file doubtful is refused always.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from hybrid.core.errors import ConfigError
from hybrid.sim.traces.trace import SHOWN_ROW_COUNT, Skipped

LONGEST_LINE_CHARS = 1 << 20
_LINES_PER_REPORT = 20_000
_GZIP = b"\x1f\x8b"
_OTHER_PACKINGS = {
    b"PK\x03\x04": "a zip file",
    b"\xfd7zXZ": "an xz file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
}

_Made = TypeVar("_Made")

OnPart = Callable[[float], None]
"""Is told how much of a file has been read, from 0 to 1."""


class TraceError(ConfigError):
    """A trace file cannot be used as it is; says which line and what to do."""


class BadLineError(ValueError):
    """A line cannot become what it should.

    Attributes:
        reason: In words that many lines share, such as `duration is not above 0`.
        found: What stands there instead.
    """

    def __init__(self, reason: str, found: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.found = found


class Tally:
    """Counts the lines that are not taken over as they stand, by reason.

    Args:
        file: Name of the file, for messages.
        is_strict: Refuse such a line instead.
    """

    def __init__(self, file: str, *, is_strict: bool = False) -> None:
        self._file = file
        self._is_strict = is_strict
        self._lines: dict[tuple[str, bool], list[int]] = {}
        self._count: dict[tuple[str, bool], int] = {}

    def skip(self, line: int, reason: str, found: str = "") -> None:
        """Count a line that is left out.

        Raises:
            TraceError: When strict.
        """
        self._add(line, reason, found, is_kept=False)

    def keep(self, line: int, reason: str, found: str = "") -> None:
        """Count a line that is used, but not as it stands.

        Raises:
            TraceError: When strict.
        """
        self._add(line, reason, found, is_kept=True)

    def result(self) -> tuple[Skipped, ...]:
        """Return the counts, in the order in which the reasons came up."""
        return tuple(
            Skipped(reason, self._count[reason, is_kept], tuple(lines), is_kept=is_kept)
            for (reason, is_kept), lines in self._lines.items()
        )

    def _add(self, line: int, reason: str, found: str, *, is_kept: bool) -> None:
        if self._is_strict:
            seen = f" ({found[:60]!r})" if found else ""
            raise TraceError(
                f"{self._file}, line {line}: {reason}{seen}; correct it, or drop --strict to have "
                "such lines counted"
            )
        lines = self._lines.setdefault((reason, is_kept), [])
        if len(lines) < SHOWN_ROW_COUNT:
            lines.append(line)
        self._count[reason, is_kept] = self._count.get((reason, is_kept), 0) + 1


@contextmanager
def lines_of(
    path: Path, on_part: OnPart | None = None, *, longest_chars: int = LONGEST_LINE_CHARS
) -> Iterator[Iterator[str]]:
    """Yield the lines of a text file, plain or gzip; memory does not grow with its size.

    Raises:
        TraceError: It is not there, is empty, is no text, or breaks off.
    """
    try:
        with path.open("rb") as raw:
            head = raw.read(8)
            _refuse_what_is_no_text(path, head)
            raw.seek(0)
            size = path.stat().st_size
            with io.TextIOWrapper(
                gzip.GzipFile(fileobj=raw) if head.startswith(_GZIP) else raw,
                encoding="utf-8-sig",
                newline="",
            ) as text:
                yield _limited(
                    path, text, longest_chars, lambda: _tell(on_part, raw.tell() / max(1, size))
                )
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is not UTF-8 text ({error.reason}); is it a trace?") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path} breaks off or is damaged ({error}); fetch it again") from error
    except FileNotFoundError as error:
        raise TraceError(
            f"there is no file {path}; see docs/traces.md for what to fetch"
        ) from error
    except IsADirectoryError as error:
        raise TraceError(f"{path} is a folder; name a file in it") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from error


class Table:
    """A CSV file with a header, read line by line.

    Attributes:
        path: The file.
        header: The names of its columns.

    Args:
        path: The file.
        renamed: How a column of the file is called here.
        on_part: Is told how much has been read.

    Raises:
        TraceError: As of `lines_of`; there is no header, or a name is in it twice.
    """

    def __init__(
        self,
        path: Path,
        *,
        renamed: Mapping[str, str] | None = None,
        on_part: OnPart | None = None,
    ) -> None:
        self.path = path
        self._rows = _csv_rows(path, on_part)
        _, names = next(self._rows)
        self.header = [(renamed or {}).get(name.strip(), name.strip()) for name in names]
        twice = sorted({name for name in self.header if self.header.count(name) > 1})
        if twice:
            raise TraceError(f"{path}, line 1: column {twice[0]} is there twice; rename one")

    def form(self, *forms: Sequence[str]) -> int:
        """Return which of several sets of columns it has: the first that is there whole.

        Raises:
            TraceError: None of them.
        """
        for place, form in enumerate(forms):
            if set(form) <= set(self.header):
                return place
        wanted = ", or ".join(", ".join(form) for form in forms)
        raise TraceError(
            f"{self.path}, line 1: it needs the columns {wanted}; it has {', '.join(self.header)}"
        )

    def each(
        self, make: Callable[[int, Mapping[str, str]], _Made], tally: Tally
    ) -> Iterator[tuple[int, _Made]]:
        """Yield each line and what `make` makes of it and of its cells, by column.

        A line of which it can make nothing (`BadLineError`) is counted; a blank one is not.

        Raises:
            TraceError: The file breaks off; or, when strict, a line is bad.
        """
        width = len(self.header)
        for line, cells in self._rows:
            if len(cells) != width:
                tally.skip(line, "not as many cells as the header", str(len(cells)))
                continue
            try:
                yield line, make(line, dict(zip(self.header, cells, strict=True)))
            except BadLineError as bad:
                tally.skip(line, bad.reason, bad.found)


def number(cell: str, what: str) -> float:
    """Return a finite number.

    Raises:
        BadLineError: It is none, such as `30m`, or NaN.
    """
    text = cell.strip()
    try:
        value = float(text)
    except ValueError:
        reason = f"{what} is missing" if not text else f"{what} is not a plain number"
        raise BadLineError(reason, text) from None
    if value - value != 0.0:  # NaN and both infinities
        raise BadLineError(f"{what} is not finite", text)
    if "_" in text:  # Python reads 1_000; a file that has it is broken
        raise BadLineError(f"{what} is not a plain number", text)
    return value


def whole(cell: str, what: str) -> int:
    """Return a whole number; `2.0` is one.

    Raises:
        BadLineError: It is none.
    """
    value = number(cell, what)
    if value != int(value):
        raise BadLineError(f"{what} is not a whole number", cell.strip())
    return int(value)


def _csv_rows(path: Path, on_part: OnPart | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not blank; at least one."""
    with lines_of(path, on_part) as lines:
        reader = csv.reader(lines, strict=True)
        is_empty = True
        try:
            for cells in reader:
                if cells:
                    is_empty = False
                    yield reader.line_num, cells
        except csv.Error as error:
            raise TraceError(f"{path}, line {reader.line_num}: no CSV ({error})") from error
        if is_empty:
            raise TraceError(f"{path} is empty; it needs a header and lines below it")


def _refuse_what_is_no_text(path: Path, head: bytes) -> None:
    if not head:
        raise TraceError(f"{path} is empty")
    for magic, name in _OTHER_PACKINGS.items():
        if head.startswith(magic):
            raise TraceError(f"{path} is {name}; unpack it to text, or to .gz")
    if b"\0" in head and not head.startswith(_GZIP):
        raise TraceError(f"{path} is not text; is it a trace?")


def _limited(
    path: Path, text: io.TextIOWrapper, longest_chars: int, report: Callable[[], None]
) -> Iterator[str]:
    """Yield lines; one without an end must not fill the memory."""
    count = 0
    while line := text.readline(longest_chars):
        count += 1
        if len(line) == longest_chars and not line.endswith("\n"):
            raise TraceError(
                f"{path}, line {count}: longer than {longest_chars} characters; is this a trace?"
            )
        if count % _LINES_PER_REPORT == 0:
            report()
        yield line


def _tell(on_part: OnPart | None, part: float) -> None:
    if on_part is not None:
        on_part(min(1.0, part))

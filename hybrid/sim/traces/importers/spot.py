"""SkyPilot's spot traces: how many instances a zone had, tick by tick.

As published there is one JSON file for each zone; the shorter form has many zones in one file, as
run lengths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from hybrid.sim.traces.collecting import LONGEST_S
from hybrid.sim.traces.csvfile import stem
from hybrid.sim.traces.reading import OnPart, TraceError, lines_of
from hybrid.sim.traces.spots import SpotTrace, SpotZone, zone_of
from hybrid.sim.traces.trace import DAY_S

_LARGEST_CHARS = 256 * 2**20


def read_spot(path: Path, *, name: str = "", on_part: OnPart | None = None) -> SpotTrace:
    """Return the zones of a file, or of all files of a folder.

    Args:
        path: A JSON file, plain or gzip, or a folder of such.
        name: What people call it.
        on_part: Is told how much has been read.

    Raises:
        TraceError: It cannot be used. There are no lines to skip in it: it is good or it is not.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    zones: dict[str, SpotZone] = {}
    for count, file in enumerate(files, start=1):
        for zone in _zones(file):
            if zone.zone in zones:
                raise TraceError(f"{file}: zone {zone.zone} is there twice; name one set of them")
            zones[zone.zone] = zone
        if on_part is not None:
            on_part(count / len(files))
    if not zones:
        raise TraceError(f"{path} holds no zone; name a JSON file of spot-traces or their folder")
    own = path.name if path.is_dir() else stem(path).removesuffix(".json")
    return SpotTrace(name or own, tuple(zones[zone] for zone in sorted(zones)))


def _zones(file: Path) -> Iterator[SpotZone]:
    content = _json(file)
    try:
        if "metadata" in content:
            ticks = [_count(value) for value in content["data"]]
            runs = [(value, len(list(group))) for value, group in groupby(ticks)]
            yield _checked(file, file.name.removesuffix(".json"), content["metadata"], runs)
            return
        for path, one in content.items():
            runs = [(_count(value), _count(ticks)) for value, ticks in one["rle"]]
            yield _checked(file, Path(path).name.removesuffix(".json"), one, runs)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise TraceError(
            f"{file} is no spot trace ({error!r}); it needs gap_seconds and data, or for each "
            "zone gap_seconds and rle"
        ) from error


def _checked(file: Path, zone: str, about: Any, runs: list[tuple[int, int]]) -> SpotZone:
    gap_s = float(about["gap_seconds"])
    if not 0.0 < gap_s <= DAY_S:
        raise TraceError(f"{file}: gap_seconds of {zone} is {gap_s}, not above 0 and up to a day")
    said = about.get("n")
    if said is not None and said != sum(ticks for _, ticks in runs):
        raise TraceError(f"{file}: the runs of {zone} do not add up to {said} ticks")
    made = zone_of(zone, gap_s, runs)
    if not made.spans:
        raise TraceError(f"{file}: zone {zone} has no ticks")
    if made.spans[-1].end_s > LONGEST_S:
        raise TraceError(f"{file}: zone {zone} is longer than ten years; are its numbers ticks?")
    return made


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


def _json(file: Path) -> dict[str, Any]:
    parts: list[str] = []
    chars = 0
    with lines_of(file, longest_chars=_LARGEST_CHARS) as lines:
        for line in lines:
            chars += len(line)
            if chars > _LARGEST_CHARS:
                raise TraceError(f"{file} is too large for a spot trace")
            parts.append(line)
    try:
        content = json.loads("".join(parts))
    except (json.JSONDecodeError, RecursionError) as error:
        raise TraceError(f"{file} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise TraceError(f"{file} is no spot trace: it holds no object")
    return content

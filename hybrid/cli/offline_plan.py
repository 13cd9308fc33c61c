"""`hybrid plan --offline`: what the policy does for some waiting work, without a cluster."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.cli import output, words
from hybrid.cli.exits import ExitCode, StopError
from hybrid.cli.prices import price, price_of
from hybrid.cli.table import Column, table, text

if TYPE_CHECKING:
    from hybrid.cli.table import Part
    from hybrid.core.offline import OfflinePlanView

_SIZES = ("memory", "object_store_memory")
_LARGEST = 1e15


def show(
    file: Path | None, gpus: str, shape: str, count: int, *, is_home_busy: bool, is_json: bool
) -> None:
    """Print the plan.

    Raises:
        SettingsError: The configuration is wrong, or an adapter refuses its part.
        StopError: The request is wrong.
    """
    from hybrid.adapters.clock import SystemClock
    from hybrid.app.offline import pool_offers
    from hybrid.app.rehearse import Question, rehearse, request_for
    from hybrid.cli.config import load
    from hybrid.core.gpu_names import request

    if gpus and shape:
        raise StopError("--gpus and --shape exclude one another; drop one", ExitCode.USAGE)
    asked = shape_of(shape) if shape else {}
    settings = load(file)
    offered = pool_offers(settings, SystemClock())
    if not asked:
        asked = dict(request_for(request(gpus or "GPU:1"), settings, offered))
    view = rehearse(settings, offered, Question(asked, count, is_home_busy))
    if is_json:
        output.write(view.model_dump_json().encode())
    else:
        output.show(*page(view))


def shape_of(content: str) -> dict[str, float]:
    """Return `GPU=8,CPU=16,memory=64GiB` as Ray's resources.

    Raises:
        StopError: It is something else.
    """
    shape: dict[str, float] = {}
    for part in content.split(","):
        name, sign, amount = (word.strip() for word in part.partition("="))
        if not name or not sign or not name.isprintable():
            raise StopError(
                f"--shape: {part!r} is no resource; write NAME=AMOUNT, for example GPU=8,CPU=16",
                ExitCode.USAGE,
            )
        if name in shape:
            raise StopError(f"--shape: {name} is there twice; drop one", ExitCode.USAGE)
        shape[name] = _amount(name, amount)
    return shape


def _amount(name: str, amount: str) -> float:
    from hybrid.core.quantity import size_bytes

    try:
        number = float(size_bytes(amount)) if name in _SIZES else float(amount)
    except ValueError:
        number = math.nan
    if not 0 < number <= _LARGEST:
        example = "64GiB" if name in _SIZES else "8 or 0.5"
        raise StopError(
            f"--shape: {amount!r} is no amount of {name}; write for example {example}",
            ExitCode.USAGE,
        )
    return number


def page(view: OfflinePlanView) -> list[Part]:
    """Return the page."""
    parts: list[Part] = [
        text(f"Cluster {view.cluster}, from {view.source}, as if its queue limit were broken now."),
        text(view.summary, "bold"),
    ]
    if view.rented:
        ticks = words.count(view.tick_count, "look")
        parts += [text(""), _rented_table(view)]
        parts.append(text(f"In all {words.rate(view.usd_per_hour)}, within {ticks} of the loop."))
    waiting = [finding for finding in view.findings if finding.reason.code != "launching"]
    for finding in waiting:
        never = " (never possible as configured)" if finding.is_for_ever else ""
        line = f"{finding.count} waiting: {finding.reason.code}: {finding.reason.message}{never}."
        parts += [text(""), text(line, "yellow")]
    if view.spared:
        parts += [text(""), _spared_table(view)]
    parts += [text(""), *(text(f"Note: {note}") for note in view.notes)] if view.notes else []
    return parts


_WHY = Column("WHY", is_long=True)


def _rented_table(view: OfflinePlanView) -> Part:
    columns = (
        "RENT",
        Column("COUNT", is_number=True),
        Column("EACH", is_number=True),
        Column("TOGETHER", is_number=True),
        "PRICE OF",
        "REASON",
        _WHY,
    )
    rows = (
        (
            item.pool.offer_id,
            str(item.count),
            price(item.pool),
            words.rate(item.usd_per_hour),
            price_of(item.pool),
            item.reason.code,
            item.reason.message,
        )
        for item in view.rented
    )
    return table(columns, rows)


def _spared_table(view: OfflinePlanView) -> Part:
    columns = ("NOT RENTED", Column("PRICE", is_number=True), "PRICE OF", "REASON", _WHY)
    rows = (
        (
            item.pool.offer_id,
            price(item.pool),
            words.NONE if item.pool.reason else price_of(item.pool),
            item.reason.code,
            item.reason.message,
        )
        for item in view.spared
    )
    return table(columns, rows)

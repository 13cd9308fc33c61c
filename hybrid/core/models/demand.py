"""What waiting work asks for."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from pydantic import Field

from hybrid.core.models.base import Model, Shape


class LabelConstraint(Model):
    """One label rule: the node's value is (or is not) one of `values`.

    As in Ray, a negated rule also admits nodes that lack the label.
    """

    key: str
    values: tuple[str, ...]
    is_negated: bool = False


Selector: TypeAlias = tuple[LabelConstraint, ...]
"""Rules that must all hold. The empty selector admits every node."""


class Demand(Model):
    """Identical requests that Ray cannot place now (tasks and actors).

    Attributes:
        shape: What one request needs.
        count: How many such requests wait, at least 1.
        selectors: Acceptable places, the preferred first; empty means anywhere.
        waiting_s: Age of the oldest of them, or `None` when it is not known yet. An upper
            bound, from counts seen over time (see `core.waiting`).
        why_now: Why a node is wanted for it however short it waited, such as a broken promise
            about latency; `""` for work that waits its turn.
    """

    shape: Shape
    count: int = Field(ge=1)
    selectors: tuple[Selector, ...] = ()
    waiting_s: float | None = None
    why_now: str = ""


class Spread(StrEnum):
    """How the bundles of a gang may share nodes; Ray's placement strategies."""

    PACK = "PACK"
    SPREAD = "SPREAD"
    STRICT_PACK = "STRICT_PACK"
    STRICT_SPREAD = "STRICT_SPREAD"


class Gang(Model):
    """A placement group that waits: all of its bundles at once, or none.

    Attributes:
        gang_id: Ray's placement group id.
        bundles: Shape and acceptable places of each bundle.
        spread: How bundles may share nodes.
        waiting_s: As in `Demand`.
    """

    gang_id: str
    bundles: tuple[Demand, ...] = Field(min_length=1)
    spread: Spread = Spread.PACK
    waiting_s: float | None = None

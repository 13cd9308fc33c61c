"""What every value has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

Shape: TypeAlias = Mapping[str, float]
"""Ray resource name -> amount, for one node or one task; `memory` is in bytes, as in Ray."""

Labels: TypeAlias = Mapping[str, str]
"""Ray node labels: key -> value."""


class Model(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

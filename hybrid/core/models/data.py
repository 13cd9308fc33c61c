"""Data that jobs read."""

from __future__ import annotations

from pydantic import Field

from hybrid.core.models.base import Model


class DataEntry(Model):
    """Something that a job reads, copied onto its node before it starts (docs/data.md).

    Attributes:
        url: A local path, http(s), or an fsspec URL.
        size_gb: In GB (10^9 bytes); `None` when not known: then nothing is rented for the job
            before its last moment.
        place: Where it lies: `onprem`, a provider such as `aws`, or `aws/us-east-1`.
        sha256: Of a file; checked after each copy. `""`: not checked against anything.
    """

    url: str = Field(min_length=1, max_length=2_000)
    size_gb: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    place: str = Field(default="onprem", min_length=1, max_length=200)
    sha256: str = Field(default="", pattern="^([0-9a-f]{64})?$")

"""Reads the text that Prometheus metrics are told in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from hybrid.adapters.metrics.fetch import UnreadableError


class Sample(NamedTuple):
    """One line."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Yield the lines of some names, as far as they are well-formed.

    A node of Ray tells a thousand lines, of which a few are wanted: the others are not parsed.

    Raises:
        UnreadableError: The parser, which comes with Ray, is not installed.
    """
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError as err:
        raise UnreadableError(
            "prometheus_client is not installed, so metrics cannot be read; install ray[default]"
        ) from err
    for line in text.splitlines():
        name = line[: max(line.find("{"), 0)] or line.partition(" ")[0]
        if name not in names:
            continue
        try:
            for family in text_string_to_metric_families(f"{line}\n"):
                for sample in family.samples:
                    yield Sample(sample.name, sample.labels, float(sample.value))
        except (ValueError, IndexError):
            continue

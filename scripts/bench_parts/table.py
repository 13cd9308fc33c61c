"""A printed document as a Markdown table, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def markdown(document: Mapping[str, Any]) -> str:
    """Return when and where it was measured, and a row for each figure."""
    return "\n".join([_heading(document), "", *_rows(document), *_failures(document)])


def _heading(document: Mapping[str, Any]) -> str:
    machine = document["machine"]
    return (
        f"{document['at']}, commit {document['commit']}, {machine['cpus']} CPUs "
        f"({machine['cpu_model']}), {machine['memory_gb']} GB, Python {document['python']}, "
        f"Ray {document['ray']}. Contention {machine['contention_before']} before and "
        f"{document['contention_after']} after (1 is a quiet machine)."
    )


def _rows(document: Mapping[str, Any]) -> Iterator[str]:
    yield "| Figure | What | Value | Target | Met |"
    yield "|---|---|---:|---:|---|"
    for figure in document["figures"]:
        words = {True: "yes", False: "**no**", None: ""}[figure["is_met"]]
        target = "" if figure["target"] is None else f"{figure['target']:g}"
        yield (
            f"| `{figure['name']}` | {figure['what']} | {_value(figure)} {figure['unit']} "
            f"| {target} | {words} |"
        )


def _value(figure: Mapping[str, Any]) -> str:
    value = figure["value"]
    if value is None:
        return "unknown"
    best, cpu = figure["details"].get("best_ms"), figure["details"].get("cpu_median_ms")
    more = f" (best {best:g}, CPU {cpu:g})" if best and cpu else ""
    return f"{value:.3g}{more}"


def _failures(document: Mapping[str, Any]) -> Iterator[str]:
    for name, why in document["failures"].items():
        yield f"\n`{name}` could not be measured: {why}"

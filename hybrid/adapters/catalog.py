"""Reads the price catalog that comes with the program: two CSV files in hybrid/catalog."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from hybrid.core.catalog import Catalog, CatalogRow, PriceSource
from hybrid.core.errors import ConfigError

PRICES = "gpus.csv"
SOURCES = "sources.csv"


def load(folder: Path | None = None) -> Catalog:
    """Return the catalog of a folder, by default the one that comes with the program.

    Raises:
        ConfigError: It cannot be read.
    """
    folder = folder or Path(str(files("hybrid"))) / "catalog"
    try:
        return Catalog(
            rows=tuple(CatalogRow.model_validate(row) for row in _rows(folder / PRICES)),
            sources=tuple(PriceSource.model_validate(row) for row in _rows(folder / SOURCES)),
        )
    except (OSError, ValueError, csv.Error) as err:
        raise ConfigError(
            f"the price catalog in {folder} cannot be read; install this program anew: {err}"
        ) from err


def _rows(file: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of a file; an empty cell is left out, since nothing is known."""
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, strict=True):
            cells = {key: cell for key, cell in row.items() if cell}
            yield {key: _zones(cell) if key == "zones" else cell for key, cell in cells.items()}


def _zones(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|"))

"""Providers, found by entry point and made from the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
)
from pathlib import Path as FilePath

from pydantic import ValidationError

from hybrid.adapters import catalog
from hybrid.core.catalog import Catalog
from hybrid.core.ports import Clock, MakeProvider, Provider, ProviderContext
from hybrid.settings import Settings, SettingsError
from hybrid.settings.problem import Path, Problem

_GROUP = "hybrid.providers"
_REQUIREMENT = re.compile(
    r"""(?P<name>[A-Za-z0-9._-]+)[^;]*;\s*extra\s*==\s*["'](?P<extra>[A-Za-z0-9._-]+)["']\s*"""
)


def make_providers(
    settings: Settings,
    folder: FilePath,
    ray_dir: FilePath,
    *,
    cluster_id: str,
    clock: Clock,
    prices: Catalog | None = None,
) -> dict[str, Provider]:
    """Return the configured providers by name. Makes no call and writes nothing.

    Args:
        settings: Which, and how.
        folder: Holds the folder of each.
        ray_dir: See `ProviderContext`.
        cluster_id: See `ProviderContext`.
        clock: Time.
        prices: The catalog; by default the one that comes with the program.

    Raises:
        SettingsError: Providers refuse their settings; it names every place in the file.
    """
    prices = catalog.load() if prices is None else prices
    made: dict[str, Provider] = {}
    problems: list[Problem] = []
    for name, point in _points(settings).items():
        context = ProviderContext(
            cluster_id=cluster_id,
            cluster_name=settings.name,
            state_dir=str(folder / name),
            ray_dir=str(ray_dir),
            clock=clock,
            catalog=prices,
            rates=settings.prices.rates,
        )
        try:
            make: MakeProvider = point.load()
            made[name] = make(name, settings.provider_raw(name), context)
        except ImportError as error:
            text = f"the provider cannot be loaded: {error}; install it anew"
            problems.append(settings.problem(name, _named_at(settings, name), text))
        except ValidationError as error:
            problems += settings.provider_error(name, error).problems
    if problems:
        raise SettingsError(settings.source, problems)
    return made


def check_sdks(settings: Settings) -> None:
    """Raise unless the SDKs of all configured providers are installed. Imports none of them.

    A provider's SDK is what the extra with its name needs, in the package it comes with.

    Raises:
        SettingsError: With the command that installs what is missing.
    """
    problems = []
    for name, point in _points(settings).items():
        if (package := point.dist) is None:
            continue
        missing = [sdk for sdk in _needs(package, name) if not _is_installed(sdk)]
        if missing:
            is_or_are = "is" if len(missing) == 1 else "are"
            text = (
                f"{' and '.join(missing)} {is_or_are} not installed, and {name} cannot be used "
                f"without; run: pip install '{package.name}[{name}]'"
            )
            problems.append(settings.problem(name, _named_at(settings, name), text))
    if problems:
        raise SettingsError(settings.source, problems)


def _points(settings: Settings) -> Mapping[str, EntryPoint]:
    points = {point.name: point for point in entry_points(group=_GROUP)}
    return {name: points[name] for name in settings.provider_names}


def _named_at(settings: Settings, name: str) -> Path:
    """Return where in `provider_raw` the provider is named: its first pool, or its block."""
    return ("pools", 0, "infra") if settings.provider_raw(name)["pools"] else ()


def _needs(package: Distribution, extra: str) -> Iterator[str]:
    for text in package.requires or ():
        match = _REQUIREMENT.fullmatch(text)
        if match and match["extra"] == extra:
            yield match["name"]


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True

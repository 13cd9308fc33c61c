"""Loads a configuration: the file, then the environment, then every check."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from pathlib import Path as FilePath

from pydantic import ValidationError

from hybrid.settings.checks import broken_rules
from hybrid.settings.document import Document, read
from hybrid.settings.model import Settings
from hybrid.settings.origin import Origin
from hybrid.settings.places import find_config, home
from hybrid.settings.problem import Path, Problem, SettingsError
from hybrid.settings.rawchecks import broken_in_words
from hybrid.settings.refusals import refusals
from hybrid.settings.variables import overrides, unknown_variables, with_value, without

PROVIDERS = "hybrid.providers"


def load(
    path: FilePath | None, env: Mapping[str, str], *, providers: Collection[str] | None = None
) -> Settings:
    """Return the configuration of a cluster.

    Args:
        path: The file; `None` for `HYBRID_CONFIG`, then `./hybrid.yaml`, then the embedded
            default.
        env: Environment variables; `HYBRID_*` override the file.
        providers: Names that a pool may give; `None` for those of installed providers.

    Raises:
        SettingsError: At least one thing is wrong. All of them are named, each with its place.
    """
    file, source = find_config(path, env)
    document = read(file, source)
    origin = Origin(
        source=source,
        file=file.absolute(),
        lines=document.lines,
        nulls=document.nulls,
        variables={at: name for at, (name, _) in overrides(env).items()},
        home=home(env),
    )
    names = known_providers() if providers is None else providers
    return check(document, origin, env=env, providers=names)


def known_providers() -> tuple[str, ...]:
    """Return the names of installed providers, without importing them."""
    return tuple(sorted({point.name for point in entry_points(group=PROVIDERS)}))


def check(
    document: Document,
    origin: Origin,
    *,
    env: Mapping[str, str],
    providers: Collection[str],
) -> Settings:
    """Return the settings that a document and the environment make.

    Raises:
        SettingsError: With everything that is wrong.
    """
    content: dict[str, object] = document.content
    for path, (_, value) in overrides(env).items():
        content = with_value(content, path, value)
    settings, unsound, problems = _validate(content, origin)
    found = [
        *broken_in_words(
            content,
            providers=providers,
            is_ledger_from_file=not origin.variable(("controller", "ledger")),
        ),
        *broken_rules(settings, unsound=unsound),
    ]
    problems += [origin.problem(path, text) for path, text in found]
    problems += [*document.problems, *unknown_variables(env)]
    if problems:
        raise SettingsError(origin.source, problems)
    return settings


def _validate(
    content: Mapping[str, object], origin: Origin
) -> tuple[Settings, frozenset[Path], list[Problem]]:
    """Return the settings, what was refused, and why.

    What was refused stands at its default, so that the rules can judge the rest and all
    problems are told at once.
    """
    try:
        return Settings.model_validate(content).with_origin(origin), frozenset(), []
    except ValidationError as err:
        unsound = frozenset(item["loc"] for item in err.errors())
        sound = dict(content)
        for path in unsound:
            sound = without(sound, path)
        sound.setdefault("name", "unnamed")
        stand_in = Settings.model_validate(sound).with_origin(origin)
        return stand_in, unsound, list(refusals(err, origin))

"""Loads a configuration: the file, its layers, then the environment, then every check."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from pathlib import Path as FilePath

from pydantic import ValidationError

from hybrid.settings.checks import broken_rules
from hybrid.settings.document import Document, read
from hybrid.settings.layers import Layer, laid_over, stored
from hybrid.settings.model import Settings
from hybrid.settings.origin import Origin
from hybrid.settings.places import find_config, home
from hybrid.settings.problem import Path, Problem, SettingsError
from hybrid.settings.rawchecks import broken_in_words
from hybrid.settings.refusals import refusals
from hybrid.settings.variables import overrides, unknown_variables, with_value, without
from hybrid.settings.words import NAME

PROVIDERS = "hybrid.providers"


def load(
    path: FilePath | None,
    env: Mapping[str, str],
    *,
    providers: Collection[str] | None = None,
    layers: Mapping[str, Layer | None] | None = None,
    state_dir: FilePath | None = None,
) -> Settings:
    """Return the configuration of a cluster.

    Args:
        path: The file; `None` for `HYBRID_CONFIG`, then `./hybrid.yaml`, then the embedded
            default.
        env: Environment variables; `HYBRID_*` override the file.
        providers: Names that a pool may give; `None` for those of installed providers.
        layers: Over the file, by name, instead of those that the cluster keeps in its state
            folder; `None` takes one away.
        state_dir: The state folder, when it is another than the configuration's.

    Raises:
        SettingsError: At least one thing is wrong. All of them are named, each with its place.
    """
    file, source = find_config(path, env)
    document = read(file, source)
    folder = state_dir or _state_dir(document, file, env)
    kept: Mapping[str, Layer | None] = _kept(folder)
    chosen = sorted({**kept, **(layers or {})}.items())
    document.content, sources = laid_over(
        document.content, [layer for _, layer in chosen if layer is not None]
    )
    origin = Origin(
        source=source,
        file=file.absolute(),
        lines=document.lines,
        nulls=document.nulls,
        layers=sources,
        variables={at: name for at, (name, _) in overrides(env).items()},
        home=home(env),
    )
    names = known_providers() if providers is None else providers
    return check(document, origin, env=env, providers=names)


def kept_layers(path: FilePath | None, env: Mapping[str, str]) -> Mapping[str, Layer]:
    """Return the layers that the cluster of a file keeps, by name. Arguments as in `load`.

    Raises:
        SettingsError: The file, or a layer, cannot be read.
    """
    file, source = find_config(path, env)
    return _kept(_state_dir(read(file, source), file, env))


def _kept(state_dir: FilePath | None) -> dict[str, Layer]:
    return {} if state_dir is None else {layer.name: layer for layer in stored(state_dir)}


def _state_dir(document: Document, file: FilePath, env: Mapping[str, str]) -> FilePath | None:
    """Return the state folder that a file means, before anything in it is checked."""
    said = {path: value for path, (_, value) in overrides(env).items()}
    given = said.get(("state_dir",), document.content.get("state_dir"))
    if isinstance(given, str) and given:
        return file.absolute().parent / FilePath(given).expanduser()
    name = said.get(("name",), document.content.get("name"))
    return home(env) / name if isinstance(name, str) and NAME.fullmatch(name) else None


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

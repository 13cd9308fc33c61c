"""Policies and parameters by the names that people write, with some values changed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hybrid.core.errors import ConfigError
from hybrid.core.policy.jobs.params import PROFILES, JobParams, ProfileName
from hybrid.core.quantity import duration_s
from hybrid.sim.baselines.tuning import KINDS
from hybrid.sim.params import SimParams
from hybrid.sim.policies import Policy, Reservoir

PROFILE_NAMES: tuple[ProfileName, ...] = get_args(ProfileName)
NAMES: tuple[str, ...] = (*PROFILE_NAMES, *KINDS)
"""Profiles of the product, then baselines."""

SITE = "sim."
"""What names of the simulated site and cloud begin with, as in `sim.boot.median=4m`."""

_PROMISED = "late_share"
_DIVISORS = ("target", "gpus_per_node", "resume_rate", "step_nodes")


@dataclass(frozen=True)
class Named:
    """A policy that can be sent to another process, and made there for one run.

    Attributes:
        name: One of `NAMES`.
        changes: Values by field, other than the defaults.
    """

    name: str
    changes: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_profile(self) -> bool:
        """Whether it is the product's own policy."""
        return self.name in PROFILE_NAMES

    def make(self, *, late_share: float) -> Policy:
        """Return the policy, new.

        Args:
            late_share: How much later than its longest wait a job may end, in shares of its run
                time: what is promised, so what the product's policy must go by.
        """
        for name in PROFILE_NAMES:
            if name == self.name:
                return Reservoir.of(name, **{"late_share": late_share, **self.changes})
        return KINDS[self.name](**self.changes)


def named(name: str, settings: Mapping[str, str]) -> Named:
    """Return a policy by its name.

    Args:
        name: One of `NAMES`.
        settings: Values as people write them, by field; those of the site are passed over.

    Raises:
        ConfigError: There is no such policy, or a value does not fit it.
    """
    if name not in NAMES:
        raise ConfigError(f"there is no policy {name!r}; take one of {', '.join(NAMES)}")
    mine = {key: text for key, text in settings.items() if not key.startswith(SITE)}
    types = _types(name)
    fields = {key: _field(key, list(types), name) for key in mine}
    changes = {at: _number(key, mine[key], at, types[at]) for key, at in fields.items()}
    if _PROMISED in changes:
        raise ConfigError("late_share is promised to people, so it is an option: --late-share")
    if name in PROFILE_NAMES:
        _checked(PROFILES[name], changes)
    else:
        for key, at in fields.items():
            _check_baseline(key, at, changes[at])
    return Named(name, changes)


def changed(params: SimParams, settings: Mapping[str, str]) -> SimParams:
    """Return parameters of the site with those settings applied that begin with `sim.`.

    Raises:
        ConfigError: There is no such parameter, or a value does not fit it.
    """
    for key, text in settings.items():
        if key.startswith(SITE):
            params = _with(params, key, key.removeprefix(SITE).split("."), text)
    return params


def with_value(model: Any, key: str, text: str) -> Any:
    """Return a model with one value changed, as people write it: `jobs.rent_after=30s`.

    Raises:
        ConfigError: There is no such parameter, or the value does not fit it.
    """
    return _with(model, key, key.split("."), text)


def takes(name: str, key: str) -> bool:
    """Return whether a policy has a parameter of this name, with its unit or without."""
    return name in NAMES and bool({key, f"{key}_s"} & _types(name).keys())


def _with(model: Any, key: str, path: list[str], text: str) -> Any:
    fields = type(model).model_fields
    at = _field(path[0], list(fields), key, whole=path[0])
    before = getattr(model, at)
    if isinstance(before, BaseModel):
        if len(path) == 1:
            inside = ", ".join(f"{key}.{name}" for name in type(before).model_fields)
            raise ConfigError(f"{key} has values of its own; set one of {inside}")
        return _checked(model, {at: _with(before, key, path[1:], text)})
    if len(path) > 1 or isinstance(before, (tuple, Mapping)):
        raise ConfigError(f"{key} cannot be set")
    value = text if isinstance(before, str) else _number(key, text, at, type(before))
    return _checked(model, {at: value})


def _checked(model: Any, changes: Mapping[str, Any]) -> Any:
    try:
        values = {name: getattr(model, name) for name in type(model).model_fields}
        return type(model)(**{**values, **changes})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{where} is {first['input']}: {first['msg'].lower()}") from None


def _check_baseline(key: str, at: str, value: float) -> None:
    least = "above 0" if at in _DIVISORS else "0 or more"
    # Written so that NaN fails it.
    if not (0 <= value < math.inf) or (value == 0 and at in _DIVISORS):
        raise ConfigError(f"{key} is {value:g}; it must be {least}")


def _types(name: str) -> dict[str, type]:
    if name in PROFILE_NAMES:
        return {at: type(getattr(PROFILES["balanced"], at)) for at in JobParams.model_fields}
    return {each.name: type(each.default) for each in dataclasses.fields(KINDS[name])}


def _field(key: str, names: list[str], owner: str, *, whole: str | None = None) -> str:
    """Return the field that is meant: its name, or its name without the unit."""
    wanted = key if whole is None else whole
    for name in (wanted, f"{wanted}_s"):
        if name in names:
            return name
    shown = ", ".join(name for name in names if name != _PROMISED)
    raise ConfigError(f"{owner} has no parameter {wanted!r}; it has {shown}")


def _number(key: str, text: str, at: str, kind: type) -> float:
    try:
        if at.endswith("_s") and not text.replace(".", "", 1).isdigit():
            return duration_s(text)
        if kind is bool:
            return bool(("false", "true").index(text.lower()))
        return int(text) if kind is int else float(text)
    except ValueError as error:
        wanted = {int: "a whole number", bool: "true or false"}.get(kind, "a number")
        what = str(error) if at.endswith("_s") else f"{text!r} is not {wanted}"
        raise ConfigError(f"{key}: {what}") from None

"""The base of every part of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ConfigDict, model_validator

from hybrid.core.models import Model


def yaml_key(field_name: str) -> str:
    """Return the key that a field has in YAML: there the value carries its unit.

    `max_wait_s` is `max_wait: 5m`, `memory_bytes` is `memory: 16GiB`.
    """
    return field_name.removesuffix("_s").removesuffix("_bytes")


class Section(Model):
    """A mapping of the configuration: frozen, no unknown keys, `null` means the default."""

    model_config = ConfigDict(alias_generator=yaml_key)

    @model_validator(mode="before")
    @classmethod
    def _null_means_default(cls, value: object) -> object:
        # A section whose lines are all commented out reads as null.
        if isinstance(value, Mapping):
            return {key: item for key, item in value.items() if item is not None}
        return value

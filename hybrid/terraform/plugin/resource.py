"""What a provider is made of; its author subclasses these."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from hybrid.terraform.plugin.diagnostics import Diagnostics, Path
from hybrid.terraform.plugin.schema import Schema, Values, attributes_of

Private = dict[str, Any]
"""What a resource keeps beside its state, out of sight; JSON, and changed in place."""

_EMPTY: Schema = {"block": {}}


class Resource:
    """One type of resource.

    A method refuses by `diagnostics.error`. An exception is shown as an error, too.

    Attributes:
        schema: See `hybrid.terraform.plugin.schema`.
    """

    schema: Schema = _EMPTY

    def validate(self, diagnostics: Diagnostics, config: Values) -> None:
        """Check a configuration beyond the schema's own checks; values may be unknown."""

    def plan(
        self,
        diagnostics: Diagnostics,  # noqa: ARG002
        prior: Values | None,  # noqa: ARG002 - `None` on creation
        proposed: Values,
        config: Values,  # noqa: ARG002
    ) -> Values:
        """Return what `apply` will make; a known value here must come out just so."""
        return proposed

    def replaced_paths(self, prior: Values, proposed: Values) -> list[Path]:
        """Return the paths whose change makes Terraform replace the resource."""
        return [
            (name,)
            for name, described in sorted(attributes_of(self.schema["block"]).items())
            if described.get("replace") and prior.get(name) != proposed.get(name)
        ]

    def create(self, diagnostics: Diagnostics, planned: Values, private: Private) -> Values | None:
        """Make it, and return its state.

        Returning a state together with an error leaves a tainted resource: what to do when it
        exists but is not whole, so that no orphan stays behind.
        """
        raise NotImplementedError

    def read(
        self,
        diagnostics: Diagnostics,  # noqa: ARG002
        state: Values,
        private: Private,  # noqa: ARG002
    ) -> Values | None:
        """Return the state as it is now; `None` when it is gone."""
        return state

    def update(
        self, diagnostics: Diagnostics, prior: Values, planned: Values, private: Private
    ) -> Values:
        """Change it in place, and return its state."""
        raise NotImplementedError

    def delete(self, diagnostics: Diagnostics, state: Values, private: Private) -> None:
        """End it; with an error it stays in the state."""
        raise NotImplementedError

    def import_(self, diagnostics: Diagnostics, identity: str) -> Values | None:
        """Return the state of what exists as `identity`; `read` completes it."""
        diagnostics.error("This resource cannot be imported", identity)
        return None

    def upgrade(
        self,
        diagnostics: Diagnostics,  # noqa: ARG002
        version: int,  # noqa: ARG002
        raw: Values,
    ) -> Values:
        """Return a state that an older version of the schema wrote, in today's shape."""
        return raw


class DataSource:
    """One type of data source."""

    schema: Schema = _EMPTY

    def validate(self, diagnostics: Diagnostics, config: Values) -> None:
        """See `Resource.validate`."""

    def read(self, diagnostics: Diagnostics, config: Values) -> Values | None:
        """Return all values, the given ones included."""
        raise NotImplementedError


class Provider:
    """A provider: its own settings, and what it offers.

    Attributes:
        stopping: Set by Ctrl-C and when Terraform died. A creation that waits looks at it,
            records what exists and returns.
    """

    schema: Schema = _EMPTY

    def __init__(
        self,
        resources: Mapping[str, Resource],
        data_sources: Mapping[str, DataSource] | None = None,
    ) -> None:
        self.resources = dict(resources)
        self.data_sources = dict(data_sources or {})
        self.stopping = threading.Event()

    def validate(self, diagnostics: Diagnostics, config: Values) -> None:
        """See `Resource.validate`."""

    def configure(self, diagnostics: Diagnostics, config: Values, terraform_version: str) -> None:
        """Take the settings; called before anything is planned, read or applied."""

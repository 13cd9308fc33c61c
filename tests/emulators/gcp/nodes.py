"""Service accounts that machines run as: the tokens of their metadata server, and their rights."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field

from tests.emulators.gcp.discovery import Call


@dataclass(frozen=True)
class Grant:
    """A role with an IAM condition on the names of instances.

    Attributes:
        name_prefix: The condition; no permission that is asked for without a name fulfils it.
    """

    permissions: Collection[str]
    name_prefix: str


@dataclass
class NodeAccounts:
    """What is granted to each, by its address."""

    grants: dict[str, Grant] = field(default_factory=dict)
    _email_by_token: dict[str, str] = field(default_factory=dict)

    def new_token(self, email: str) -> str:
        """Return an access token, as a machine of the account is given."""
        token = f"ya29.c.{secrets.token_urlsafe(32)}"
        self._email_by_token[token] = email
        return token

    def email_of(self, token: str) -> str:
        """Return whose token it is; `""` for nobody's."""
        return self._email_by_token.get(token, "")

    def allows(self, email: str, permission: str, call: Call) -> bool:
        """Return whether a request with the account's token may use a permission."""
        grant = self.grants.get(email)
        name = call.path.get("instance", "")
        return (
            grant is not None
            and permission in grant.permissions
            and bool(name)
            and name.startswith(grant.name_prefix)
        )

"""One call that rents, and the tokens inside it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from hybrid.core.errors import ProviderError
from hybrid.core.models import Instance
from hybrid.core.ports import GangProvider, Provider


def launch_token(cluster_id: str, instance_id: str, attempt: int) -> str:
    """Return the idempotency token of a launch: 40 hex digits, the same for ever."""
    text = f"{cluster_id}/{instance_id}/{attempt}"
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def join_token(secret: bytes, instance_id: str, attempt: int) -> str:
    """Return the one-time secret with which an instance's node asks for Ray's token.

    Derived, so that a repeated launch carries the same user data and nothing secret is stored.
    """
    return hmac.new(secret, f"{instance_id}/{attempt}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Request:
    """One call that rents: an instance, or a gang whole."""

    instances: tuple[Instance, ...]
    provider: Provider
    join_tokens: Mapping[str, str]
    may_ask: Callable[[str], bool]

    def ask(self) -> Mapping[str, str] | ProviderError | None:
        """Make the call; return the cloud's ids by ours, or what the cloud said instead.

        `None`: it was not made, since a switch was thrown while it waited for its turn.
        """
        if not self.may_ask(self.provider.name):
            return None
        first = self.instances[0]
        try:
            if len(self.instances) == 1:
                secret = self.join_tokens[first.instance_id]
                provider_id = self.provider.launch(
                    first.offer, first.spec, token=first.token, join_token=secret
                )
                return {first.instance_id: provider_id}
            # An offer that says `max_gang` is one of such a provider.
            together = cast("GangProvider", self.provider)
            specs = [instance.spec for instance in self.instances]
            return together.launch_gang(
                first.offer, specs, token=first.token, join_tokens=self.join_tokens
            )
        except ProviderError as error:
            return error

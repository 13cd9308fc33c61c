"""A launch, from the create call to the proof of what became of it.

Google accepts a launch first and finds out later whether there is a machine. So "no stock" is
said only when the operation has failed and a look shows that nothing exists; a half-made machine
is deleted before. Whatever cannot be proved in time is a `TransientError`: the same token later
finds the same operation, because it gives the same request id.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.core.errors import (
    ConflictError,
    NotFoundError,
    PendingError,
    ProviderError,
    TransientError,
)
from hybrid.core.models import LaunchSpec
from hybrid.core.ports import Clock
from providers.gcp.client import Client
from providers.gcp.errors import refused
from providers.gcp.naming import TOKEN_LABEL, Place, owned_instance_id, token_mark
from providers.gcp.resources import Operation
from providers.gcp.undecided import Undecided

# Never change this: the same token must give the same request id for ever.
_NAMESPACE = uuid.UUID("6f1d5c1e-7d3b-4d0e-9a6b-2f0f4a9c5b11")
# Google may answer a wait at once when it is busy; without a bound this would be a storm.
_MOST_WAITS = 3


def request_id(token: str) -> str:
    """Return the request id of a token: a UUID, the same for ever."""
    return str(uuid.uuid5(_NAMESPACE, token))


@dataclass(frozen=True)
class Launcher:
    """Launches single instances. Any thread may call it.

    Attributes:
        wait_s: How long Google is waited for.
    """

    client: Client
    clock: Clock
    cluster_id: str
    wait_s: float
    undecided: Undecided

    def launch(
        self, place: Place, body: Mapping[str, object], spec: LaunchSpec, *, token: str
    ) -> None:
        """Launch; returns when the machine is proved to exist. Raises as `Provider.launch`."""
        try:
            operation = self.client.insert(place, body, request_id=request_id(token))
        except ConflictError as err:
            self._check_ours(place, token, err)
            return
        self.undecided.add(place, spec.instance_id, operation)
        operation = self.end_of(operation)
        if not operation.is_done:
            raise self.pending(f"launch {place}")
        if operation.failures:
            self._check_nothing_is_left(place, token)
            self.undecided.forget([place])
            doing = f"launch {place}"
            raise refused(operation.failures, provider=self.client.provider, doing=doing)
        self.undecided.forget([place])

    # --- what single launches and gangs share ---------------------------------------------

    def end_of(self, operation: Operation) -> Operation:
        """Return the operation when it is done or the time is over.

        Whatever goes wrong meanwhile, the launch was accepted: the outcome is unknown.
        """
        try:
            return wait(self.client, operation, clock=self.clock, limit_s=self.wait_s)
        except ProviderError as err:
            text = f"accepted, but its end is unknown: {err}"
            raise TransientError(text, provider=err.provider, code=err.code) from err

    def pending(self, doing: str) -> PendingError:
        """Return the error of an operation that takes longer than we wait."""
        text = f"still at work after {self.wait_s:.0f} s; asked again with the same token"
        return PendingError(f"Google Cloud, {doing}: {text}", provider=self.client.provider)

    def unknown(self, doing: str, text: str) -> TransientError:
        """Return the error of a launch whose outcome is unknown."""
        return TransientError(f"Google Cloud, {doing}: {text}", provider=self.client.provider)

    # --- proofs ---------------------------------------------------------------------------

    def _check_ours(self, place: Place, token: str, err: ConflictError) -> None:
        """Raise unless the machine that has our name came from this very token."""
        try:
            labels = self.client.get(place).labels
        except ProviderError as problem:
            text = f"its name is taken, and by what: {problem}"
            raise self.unknown(f"launch {place}", text) from err
        is_ours = owned_instance_id(labels, place.name, cluster_id=self.cluster_id) is not None
        if not is_ours or labels.get(TOKEN_LABEL) != token_mark(token):
            text = f"{place} exists already, from another launch"
            raise ConflictError(text, provider=err.provider, code=err.code) from err

    def _check_nothing_is_left(self, place: Place, token: str) -> None:
        """Delete what a failed launch has left; raise unless there is nothing any more."""
        try:
            labels = self.client.get(place).labels
            if labels.get(TOKEN_LABEL) != token_mark(token):
                return  # another machine has that name, and that is why the launch failed
            operation = self.client.delete(place)
            done = wait(self.client, operation, clock=self.clock, limit_s=self.wait_s)
        except NotFoundError:
            return
        except ProviderError as err:
            text = f"failed, and what is left of it is not ended yet: {err}"
            raise TransientError(text, provider=err.provider, code=err.code) from err
        if done.failures or not done.is_done:
            text = "failed, and what is left of it is being deleted"
            raise self.unknown(f"launch {place}", text)


def wait(client: Client, operation: Operation, *, clock: Clock, limit_s: float) -> Operation:
    """Return an operation when it is done, or as it is after `limit_s`. Raises as `Client`."""
    end_s = clock.monotonic_s() + limit_s
    for _ in range(_MOST_WAITS):
        left_s = end_s - clock.monotonic_s()
        if operation.is_done or left_s <= 0:
            break
        operation = client.wait(operation, limit_s=left_s)
    return operation

"""A launch, from the create call to the proof of what became of it.

Google accepts a launch first and finds out later whether there is a machine. So "no stock" is
said only when the operation has failed and a look shows that nothing exists; a half-made machine
is deleted before. Whatever cannot be proved in time is a `TransientError`: the same token later
finds the same operation, because it gives the same request id.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaError,
    TransientError,
)
from hybrid.core.models import LaunchSpec
from hybrid.core.ports import Clock
from providers.gcp.client import Client
from providers.gcp.errors import Failure, error, kind_of
from providers.gcp.naming import TOKEN_LABEL, Place, owned_instance_id, token_mark
from providers.gcp.resources import Operation

# Never change this: the same token must give the same request id for ever.
_NAMESPACE = uuid.UUID("6f1d5c1e-7d3b-4d0e-9a6b-2f0f4a9c5b11")
_REMEMBERED_S = 600.0
# Google may answer a wait at once when it is busy; without a bound this would be a storm.
_MOST_WAITS = 3
_FINAL = (QuotaError, InvalidRequestError, AuthError, ConflictError)


def request_id(token: str) -> str:
    """Return the request id of a token: a UUID, the same for ever."""
    return str(uuid.uuid5(_NAMESPACE, token))


@dataclass
class Pending:
    """A launch that was accepted and whose end was not seen.

    Attributes:
        failed_at_s: When it was seen to have failed, by the clock that does not jump.
    """

    instance_id: str
    operation: Operation
    started_at_s: float
    problem: str = ""
    failed_at_s: float | None = None


@dataclass
class Launcher:
    """Launches instances, and remembers which launches are undecided.

    The memory only makes the list say sooner why a machine never came. Without it, after a
    restart, such a machine is missing from the list, and the next call with its token tells.
    """

    client: Client
    clock: Clock
    cluster_id: str
    wait_s: float
    _pending: dict[Place, Pending] = field(default_factory=dict)

    def launch(
        self, place: Place, body: Mapping[str, object], spec: LaunchSpec, *, token: str
    ) -> None:
        """Launch; returns when the machine is proved to exist. Raises as `Provider.launch`."""
        try:
            operation = self.client.insert(place, body, request_id=request_id(token))
        except ConflictError as err:
            self._check_ours(place, token, err)
            return
        self._pending[place] = Pending(spec.instance_id, operation, self.clock.now_s())
        operation = self._end_of(operation)
        if not operation.is_done:
            text = f"still at work after {self.wait_s:.0f} s; asked again with the same token"
            raise self._undecided(place, text)
        if operation.failures:
            self._check_nothing_is_left(place, token)
            del self._pending[place]
            raise self._refusal(place, operation.failures[0])
        self._pending.pop(place, None)

    def failed(self, listed: Collection[Place]) -> Iterator[tuple[Place, Pending]]:
        """Yield launches that were accepted and then failed, for ten minutes each.

        Args:
            listed: What the cloud's list has now: nothing is asked about that.
        """
        now_s = self.clock.monotonic_s()
        for place, pending in list(self._pending.items()):
            if place in listed:
                continue
            if pending.failed_at_s is None:
                self._look_again(place, pending)
            if pending.failed_at_s is None:
                continue
            if now_s - pending.failed_at_s > _REMEMBERED_S:
                self._pending.pop(place, None)
                continue
            yield place, pending

    def forget(self, place: Place) -> None:
        """Forget a launch: its machine was seen to run, or somebody ended it."""
        self._pending.pop(place, None)

    # --- proofs ---------------------------------------------------------------------------

    def _end_of(self, operation: Operation) -> Operation:
        """Return the operation when it is done or the time is over.

        Whatever goes wrong meanwhile, the launch was accepted: the outcome is unknown.
        """
        try:
            return wait(self.client, operation, clock=self.clock, limit_s=self.wait_s)
        except ProviderError as err:
            text = f"accepted, but its end is unknown: {err}"
            raise TransientError(text, provider=err.provider, code=err.code) from err

    def _check_ours(self, place: Place, token: str, err: ConflictError) -> None:
        """Raise unless the machine that has our name came from this very token."""
        try:
            labels = self.client.get(place).labels
        except ProviderError as problem:
            raise self._undecided(place, f"its name is taken, and by what: {problem}") from err
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
            raise self._undecided(place, "failed, and what is left of it is being deleted")

    def _look_again(self, place: Place, pending: Pending) -> None:
        try:
            operation = self.client.look_at(pending.operation)
            if operation.failures and self._exists(place):
                return  # half made, and not in the list yet: not gone
        except ProviderError:
            return  # the list was read; only the reason of an absence stays unknown
        if operation.failures:
            pending.problem = str(self._refusal(place, operation.failures[0]))
            pending.failed_at_s = self.clock.monotonic_s()
        elif operation.is_done:
            self._pending.pop(place, None)

    def _exists(self, place: Place) -> bool:
        try:
            self.client.get(place)
        except NotFoundError:
            return False
        return True

    def _refusal(self, place: Place, failure: Failure) -> ProviderError:
        """Return the error of a launch that was accepted, failed, and left nothing.

        Its token is used up: asked again, Google only repeats the failed operation. So what
        would otherwise be tried again becomes "try another offer".
        """
        kind = kind_of(failure)
        if issubclass(kind, NotFoundError):
            kind = InvalidRequestError
        elif not issubclass(kind, _FINAL):
            kind = CapacityError
        return error(kind, failure, provider=self.client.provider, doing=f"launch {place}")

    def _undecided(self, place: Place, text: str) -> TransientError:
        return TransientError(
            f"Google Cloud, launch {place}: {text}", provider=self.client.provider
        )


def wait(client: Client, operation: Operation, *, clock: Clock, limit_s: float) -> Operation:
    """Return an operation when it is done, or as it is after `limit_s`. Raises as `Client`."""
    end_s = clock.monotonic_s() + limit_s
    for _ in range(_MOST_WAITS):
        left_s = end_s - clock.monotonic_s()
        if operation.is_done or left_s <= 0:
            break
        operation = client.wait(operation, limit_s=left_s)
    return operation

"""The one retry engine above all adapters, and the limits on how often a cloud is called.

Adapters make one call and translate its error. Here that call waits for its token bucket and is
repeated, with the same idempotency token, when its error says that this may help. What does not
help within a few seconds is left to the next tick, so that one slow cloud cannot hold the others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar, cast

from pydantic import Field
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from hybrid.control import log
from hybrid.core.backoff import backoff_s
from hybrid.core.bucket import Bucket, Rate
from hybrid.core.errors import (
    HybridError,
    PendingError,
    ProviderError,
    ThrottledError,
    TransientError,
)
from hybrid.core.models import CloudInstance, LaunchSpec, Model, Offer
from hybrid.core.models.withheld import Offered
from hybrid.core.ports import Clock, GangProvider, Provider, TidyProvider
from hybrid.core.ports.pools import offered_by

_log = log.get(__name__)
_T = TypeVar("_T")
_OWN_LIMIT = "OwnLimit"
_CHANGES = ("launch", "extend", "terminate")


class CallLimits(Model):
    """How a provider may be called.

    Attributes:
        rates: Token bucket of each API class. `terminate` has its own, so that a storm of
            launches can never keep us from ending what costs money.
        try_count: Calls made for one request at most.
        pause_s: Pause before the second try; doubles, with jitter.
        wait_s: Longest wait for a token; longer is reported as throttled.
    """

    rates: Mapping[str, Rate] = Field(
        default_factory=lambda: {
            "launch": Rate(per_s=2.0, burst=20),
            "list": Rate(per_s=2.0, burst=10),
            "offers": Rate(per_s=1.0, burst=10),
            "extend": Rate(per_s=2.0, burst=20),
            "terminate": Rate(per_s=5.0, burst=50),
        }
    )
    try_count: int = Field(default=3, ge=1)
    pause_s: float = Field(default=0.2, gt=0)
    wait_s: float = Field(default=2.0, ge=0)


class CalledProvider:
    """A provider whose calls are limited and repeated; see the module. Thread-safe."""

    def __init__(
        self,
        inner: Provider,
        clock: Clock,
        rng: random.Random,
        limits: CallLimits | None = None,
        *,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Wrap `inner`.

        Args:
            inner: The adapter.
            clock: Time.
            rng: Draws the jitter.
            limits: How the provider may be called.
            check: Called right before each call that changes something, repeats included;
                raises `FencedError` when another controller took over meanwhile.
        """
        self._inner = inner
        self._check = check
        self._clock = clock
        self._rng = rng
        self._limits = limits or CallLimits()
        self._lock = threading.Lock()
        now_s = clock.monotonic_s()
        self._buckets = {
            name: Bucket.full(rate, now_s=now_s) for name, rate in self._limits.rates.items()
        }

    @property
    def name(self) -> str:
        """See `Provider.name`."""
        return self._inner.name

    @property
    def list_lag_s(self) -> float:
        """See `Provider.list_lag_s`."""
        return self._inner.list_lag_s

    def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`."""
        return self._call("offers", self._inner.offers)

    def pool_offers(self) -> Sequence[Offered]:
        """See `CandidProvider.pool_offers`; of other adapters the offers alone."""
        return self._call("offers", lambda: offered_by(self._inner))

    def launch(self, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str) -> str:
        """See `Provider.launch`. Repeated with the same token, so nothing is rented twice.

        A refusal says what came of one call. After one without an answer it proves nothing, and
        the whole is reported as unknown.
        """
        return self._rent(
            lambda: self._inner.launch(offer, spec, token=token, join_token=join_token)
        )

    def launch_gang(
        self,
        offer: Offer,
        specs: Sequence[LaunchSpec],
        *,
        token: str,
        join_tokens: Mapping[str, str],
    ) -> Mapping[str, str]:
        """See `GangProvider.launch_gang`, for an adapter that is one."""
        inner = cast("GangProvider", self._inner)
        return self._rent(
            lambda: inner.launch_gang(offer, specs, token=token, join_tokens=join_tokens)
        )

    def _rent(self, call: Callable[[], _T]) -> _T:
        unknown: list[TransientError] = []

        def once() -> _T:
            try:
                return self._checked(call)
            except TransientError as error:
                unknown.append(error)
                raise

        try:
            return self._call("launch", once)
        except ProviderError as error:
            if not unknown or isinstance(error, TransientError):
                raise
            raise TransientError(
                f"{error}; an earlier call got no answer: {unknown[0]}",
                provider=error.provider,
                code=error.code,
            ) from error

    def list_instances(self) -> Sequence[CloudInstance]:
        """See `Provider.list_instances`."""
        return self._call("list", self._inner.list_instances)

    def terminate(self, provider_ids: Collection[str]) -> None:
        """See `Provider.terminate`."""
        self._call("terminate", lambda: self._inner.terminate(provider_ids))

    def extend(self, provider_ids: Collection[str], *, until_s: float) -> None:
        """See `Provider.extend`."""
        self._call("extend", lambda: self._inner.extend(provider_ids, until_s=until_s))

    def tidy(self) -> None:
        """See `TidyProvider.tidy`; an adapter that is none has nothing to remove."""
        if isinstance(self._inner, TidyProvider):
            self._call("terminate", self._inner.tidy)

    def _call(self, kind: str, call: Callable[[], _T]) -> _T:
        engine = Retrying(
            retry=retry_if_exception(_is_worth_repeating),
            stop=stop_after_attempt(self._limits.try_count),
            wait=self._pause_s,
            sleep=self._clock.sleep,
            reraise=True,
        )

        def limited() -> _T:
            self._wait_for_token(kind)
            if self._check is not None and kind in _CHANGES:
                self._check()
            return self._checked(call)

        return engine(limited)

    def _checked(self, call: Callable[[], _T]) -> _T:
        """Make a call; an adapter's own mistake is that cloud's trouble and nobody else's."""
        try:
            return call()
        except HybridError:
            raise
        except Exception as error:
            _log.exception("adapter_failed", provider=self.name)
            raise TransientError(
                f"the adapter failed: {type(error).__name__}: {error}; the controller's log has "
                f"the place; please report it",
                provider=self.name,
                code=type(error).__name__,
            ) from error

    def _pause_s(self, state: RetryCallState) -> float:
        return backoff_s(
            state.attempt_number,
            base_s=self._limits.pause_s,
            cap_s=self._limits.wait_s,
            jitter=self._rng.random(),
        )

    def _wait_for_token(self, kind: str) -> None:
        waited_s = 0.0
        while True:
            with self._lock:
                bucket, wait_s = self._buckets[kind].take(now_s=self._clock.monotonic_s())
                self._buckets[kind] = bucket
            if wait_s <= 0:
                return
            waited_s += wait_s
            if waited_s > self._limits.wait_s:
                rate = self._limits.rates[kind]
                raise ThrottledError(
                    f"our own limit of {rate.per_s:g} {kind} calls per second is used up; the "
                    f"next tick goes on",
                    provider=self.name,
                    code=_OWN_LIMIT,
                )
            self._clock.sleep(wait_s)


def _is_worth_repeating(error: BaseException) -> bool:
    """Return whether the same call again, in a moment, may work.

    Our own limit is not repeated here: the bucket was waited for already. Nor is what the cloud
    accepted: it was waited for too, and until the next tick the cloud's list may show it.
    """
    if isinstance(error, PendingError):
        return False
    if isinstance(error, ThrottledError):
        return error.code != _OWN_LIMIT
    return isinstance(error, TransientError)

"""Errors whose class says what to do next, never which cloud failed."""

from __future__ import annotations

from enum import StrEnum


class HybridError(Exception):
    """Anything this program raises on purpose.

    `str(error)` is one sentence for a person: what is wrong, where, and what to do.
    """


class ConfigError(HybridError):
    """An operator must edit a file or a flag; the command line exits with code 2."""


class ClusterError(HybridError):
    """Ray is unreachable or answered nonsense; skip what depends on it this tick."""


class LedgerError(HybridError):
    """The ledger could not be read or written; nothing may be launched."""


class LedgerLostError(LedgerError):
    """The ledger was deleted or replaced: no later controller would find what is written here."""


class FencedError(LedgerError):
    """Another controller holds a newer epoch; this process must stop acting at once."""


class CapExceededError(HybridError):
    """A reservation would pass a cap; the launch does not happen.

    Attributes:
        cap: Name of the cap, as in `Caps`.
    """

    def __init__(self, message: str, *, cap: str) -> None:
        super().__init__(message)
        self.cap = cap


class IllegalTransitionError(HybridError):
    """A bug: quarantine that one instance, raise an alarm, go on."""


class FleetError(HybridError):
    """An on-prem host could not be joined, probed or left; its own trouble only."""


class JobError(HybridError):
    """A job request cannot be met: unknown id, or Ray refused it."""


class Scope(StrEnum):
    """How far a failure reaches; everything inside it rests with it."""

    POOL = "pool"
    """One offer: this type, at this place, in this market."""
    ZONE = "zone"
    REGION = "region"
    ACCOUNT = "account"
    """The whole provider block."""


class ProviderError(HybridError):
    """One cloud call failed in a way the adapter does not know.

    Attributes:
        provider: Name of the provider, as in the configuration.
        code: The cloud's own error code, or `""`.
        scope: How far it reaches; the class says what is usual.
    """

    usual_scope = Scope.POOL

    def __init__(
        self, message: str, *, provider: str, code: str = "", scope: Scope | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.code = code
        self.scope = scope or self.usual_scope


class CapacityError(ProviderError):
    """No stock: try another offer."""


class QuotaError(ProviderError):
    """Our own limit or balance: skip the region unless the scope says otherwise, tell a human."""

    usual_scope = Scope.REGION


class ThrottledError(ProviderError):
    """Too many calls: the same call again, later."""


class TransientError(ProviderError):
    """Outcome unknown or passing trouble: the same call again, with the same token."""


class PendingError(TransientError):
    """The cloud took the call and is still at work: the same call again, but not at once."""


class AuthError(ProviderError):
    """Credentials are missing, wrong or expired: stop using the provider, tell a human."""

    usual_scope = Scope.ACCOUNT


class InvalidRequestError(ProviderError):
    """The cloud will never accept this request: stop this offer, tell a human."""


class ConflictError(ProviderError):
    """The token or name exists with other parameters: adopt it, or stop."""


class NotFoundError(ProviderError):
    """The thing does not exist; for terminate this means done."""

"""A token bucket as a value: how many calls are allowed, and when the next one is."""

from __future__ import annotations

from pydantic import Field

from hybrid.core.models import Model


class Rate(Model):
    """A limit on calls.

    Attributes:
        per_s: Calls per second in the long run.
        burst: Calls that may come at once after a rest.
    """

    per_s: float = Field(gt=0)
    burst: int = Field(ge=1)


class Bucket(Model):
    """Tokens left at one instant. Instants are monotonic seconds."""

    rate: Rate
    tokens: float
    at_s: float

    @classmethod
    def full(cls, rate: Rate, *, now_s: float) -> Bucket:
        """Return a bucket nobody has used."""
        return cls(rate=rate, tokens=rate.burst, at_s=now_s)

    def take(self, *, now_s: float) -> tuple[Bucket, float]:
        """Return the bucket after one call, and how long that call must wait first, seconds.

        A wait above 0 means that the call is not allowed yet; the bucket is then unchanged but
        for the time.
        """
        passed_s = max(0.0, now_s - self.at_s)
        tokens = min(float(self.rate.burst), self.tokens + passed_s * self.rate.per_s)
        if tokens >= 1.0:
            return self.model_copy(update={"tokens": tokens - 1.0, "at_s": now_s}), 0.0
        wait_s = (1.0 - tokens) / self.rate.per_s
        return self.model_copy(update={"tokens": tokens, "at_s": now_s}), wait_s

"""What machines cost on demand by AWS's own price list, asked for now and then."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from typing import Any

from hybrid.core.backoff import backoff_s
from hybrid.core.catalog import CatalogRow
from hybrid.core.errors import AuthError, ProviderError, ThrottledError, TransientError
from hybrid.core.ports import Clock
from providers.aws import pricelist
from providers.aws.client import AwsClient

AGAIN_S = 300.0
"""After a failure the same is asked again no sooner; the pause doubles, to an hour."""

FORBIDDEN_S = 3600.0
"""The same, when the account may not ask: a permission does not come by itself."""

LOOK_S = 10.0
"""After this long the rest is left to the next look: a tick waits for its slowest cloud."""

_LATER = "it is asked in the next minutes, since AWS answers slowly"

_PAGE_COUNT = 100
_MOST_PRODUCTS = 500
"""One type in one region has a few; a list that never ends is not read to its end."""

_PASSING: tuple[type[ProviderError], ...] = (AuthError, ThrottledError, TransientError)


class ListPrices:
    """The on-demand prices of some types. The last one stands in while none can be had.

    AWS answers for one type and region at a time, so this is a call for each, rarely; no launch
    makes one. A price keeps the day it was read on, and whoever uses it judges its age.
    """

    def __init__(self, client: AwsClient, clock: Clock, *, every_s: float | None) -> None:
        self._client = client
        self._clock = clock
        self._every_s = every_s
        self._rows: dict[tuple[str, str], CatalogRow] = {}
        self._problems: dict[tuple[str, str], str] = {}
        self._due_at_s: dict[tuple[str, str], float] = {}
        self._rests: dict[str, tuple[float, str]] = {}
        self._failure_counts: Counter[str] = Counter()

    @property
    def is_asked(self) -> bool:
        """Whether AWS is asked at all."""
        return self._every_s is not None

    def refresh(self, region: str, types: Collection[str]) -> None:
        """Read the prices that are due. What goes wrong is kept for `problem`."""
        if self._every_s is None:
            return
        end_s = self._clock.monotonic_s() + LOOK_S
        for name in sorted(types):
            key, now_s = (region, name), self._clock.monotonic_s()
            if now_s < self._due_at_s.get(key, 0.0):
                continue
            if now_s >= end_s:
                self._problems.setdefault(key, _LATER)
                continue
            problem, again_s = self._read(region, name, self._every_s)
            self._problems[key] = problem
            self._due_at_s[key] = self._clock.monotonic_s() + again_s

    def row(self, region: str, name: str) -> CatalogRow | None:
        """Return the last price that AWS said, with its day."""
        return self._rows.get((region, name))

    def problem(self, region: str, name: str) -> str:
        """Return why there is no newer price; `""` when the last reading went well."""
        if self._every_s is None:
            return "providers.aws.price_refresh is off, so AWS is not asked"
        return self._problems.get((region, name), "")

    def is_silent(self, region: str) -> bool:
        """Return whether the list did not answer last time: forbidden, or not reached."""
        until_s, _ = self._rests.get(pricelist.home(region), (0.0, ""))
        return self._clock.monotonic_s() < until_s

    def _read(self, region: str, name: str, every_s: float) -> tuple[str, float]:
        """Ask for one price; return what went wrong, and when to ask again."""
        home = pricelist.home(region)
        if not home:
            return f"AWS has no price list for {region}", every_s
        until_s, why = self._rests.get(home, (0.0, ""))
        if (left_s := until_s - self._clock.monotonic_s()) > 0:
            return why, left_s  # one refusal speaks for the whole list
        try:
            self._rows[region, name] = self._ask(home, region, name)
        except _PASSING as error:
            rest_s = self._rest_s(home, error)
            self._rests[home] = (self._clock.monotonic_s() + rest_s, str(error))
            return str(error), rest_s
        except (ProviderError, ValueError) as error:
            return str(error), AGAIN_S
        self._failure_counts.pop(home, None)
        return "", every_s

    def _rest_s(self, home: str, error: ProviderError) -> float:
        """Return how long a list is left alone: each look at one that is not there takes time."""
        if isinstance(error, AuthError):
            return FORBIDDEN_S
        self._failure_counts[home] += 1
        return backoff_s(self._failure_counts[home], base_s=AGAIN_S, cap_s=FORBIDDEN_S)

    def _ask(self, home: str, region: str, name: str) -> CatalogRow:
        params: dict[str, Any] = {
            "ServiceCode": pricelist.SERVICE,
            "Filters": pricelist.filters(region, name),
            "FormatVersion": "aws_v1",
            "MaxResults": _PAGE_COUNT,
        }
        products = self._client.pages(home, "pricing.get_products", "PriceList", **params)
        return pricelist.read(
            itertools.islice(products, _MOST_PRODUCTS),
            region=region,
            instance_type=name,
            now_s=self._clock.now_s(),
        )

"""Which nodes a label selector admits, by Ray's own rules."""

from __future__ import annotations

from collections.abc import Iterable

from hybrid.core.models import Labels, Selector


def admits(selector: Selector, labels: Labels) -> bool:
    """Return whether a node with `labels` satisfies every rule of `selector`.

    A negated rule also admits nodes that lack the label, as in Ray 2.60 (measured).
    """
    return all((labels.get(rule.key) in rule.values) != rule.is_negated for rule in selector)


def admits_any(selectors: tuple[Selector, ...], labels: Labels) -> bool:
    """Return whether one of the acceptable places admits the node; no selector admits all."""
    return not selectors or any(admits(selector, labels) for selector in selectors)


def describe(selectors: tuple[Selector, ...]) -> str:
    """Return the selectors in Ray's notation, the preferred first."""
    return " or ".join(_describe_one(selector) for selector in selectors) or "anywhere"


def sites(selectors: tuple[Selector, ...]) -> tuple[str, ...]:
    """Return which of `onprem` and `cloud` a request accepts, judged by the `site` label."""
    accepted = []
    for site in ("onprem", "cloud"):
        rules = ([rule for rule in s if rule.key == "site"] for s in selectors)
        if not selectors or any(admits(tuple(only), {"site": site}) for only in rules):
            accepted.append(site)
    return tuple(accepted)


def _describe_one(selector: Selector) -> str:
    return ",".join(_describe_rules(selector)) or "anywhere"


def _describe_rules(selector: Selector) -> Iterable[str]:
    for rule in selector:
        many = len(rule.values) != 1
        value = f"in({','.join(rule.values)})" if many else rule.values[0]
        yield f"{rule.key}={'!' if rule.is_negated else ''}{value}"

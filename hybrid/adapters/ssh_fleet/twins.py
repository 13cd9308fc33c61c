"""Whether two hosts of the configuration are one machine, or look like it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.adapters.ssh_fleet.facts import Facts
from hybrid.adapters.ssh_fleet.judging import Finding


def twins(facts_by_host: Mapping[str, Facts]) -> Iterator[tuple[str, Finding]]:
    """Yield, for each host, whether another one is the same machine or looks like it."""
    for name, facts in facts_by_host.items():
        yield name, _twin(name, facts, facts_by_host)


def clash(facts: Facts, other_name: str, other: Facts) -> str:
    """Return why two hosts cannot both join; `""` when they can."""
    if facts.identity == other.identity:
        return f"it is the same machine as host {other_name} ({other.hostname})"
    shared = {g.uuid for g in facts.gpus.found} & {g.uuid for g in other.gpus.found}
    if shared:
        return f"it has {len(shared)} GPUs that are host {other_name}'s too"
    return ""


def _twin(name: str, facts: Facts, facts_by_host: Mapping[str, Facts]) -> Finding:
    others = {other: its for other, its in facts_by_host.items() if other != name}
    for other, its in others.items():
        if why := clash(facts, other, its):
            return Finding(
                "machine",
                "fail",
                why,
                f"correct the address of {name} or of {other}, or remove one: its GPUs would be "
                "counted twice",
                is_blocking=True,
            )
    alike = [o for o, its in others.items() if facts.hostname == its.hostname]
    if alike:
        return Finding(
            "machine",
            "warn",
            f"it calls itself {facts.hostname}, as {', '.join(alike)} does; Ray does not mind",
            f"give it a name of its own: `hostnamectl set-hostname {name}` there",
        )
    return Finding("machine", "ok", facts.hostname)

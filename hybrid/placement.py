"""Ray options that say where tasks, actors and Serve replicas may run.

Ray's default does not prefer any site: left alone, work goes to rented nodes while your own
stand empty. Splat one of these into the options::

    @ray.remote(num_gpus=1, **hybrid.prefer_onprem())
    def train(shard): ...

    Trainer.options(**hybrid.onprem_only()).remote()

    @serve.deployment(ray_actor_options={"num_gpus": 1, **hybrid.prefer_onprem(accelerator="A100")})
    class Model: ...

What they do not do (Ray 2.60, measured):

- Child tasks do not inherit them. A task pinned to a site can start others anywhere. To hold
  a whole tree of work, run it in a placement group of bundles of that site which captures
  child tasks::

      group = placement_group(
          [{"GPU": 1}] * 4, bundle_label_selector=[hybrid.onprem_only()["label_selector"]] * 4
      )
      strategy = PlacementGroupSchedulingStrategy(
          group, placement_group_capture_child_tasks=True
      )
      train.options(scheduling_strategy=strategy).remote()

- Placement groups take no second choice, so `prefer_onprem` is for tasks and actors only.
- They say where code runs, not where data goes: a cloud task can read an on-prem object.
- "Prefer" looks at what is free now: work goes to a free cloud node rather than wait for an
  on-prem one to become free.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Rule: TypeAlias = str | Sequence[str]
"""A label's wanted value, or several of which one is enough."""

_KEY = re.compile(r"([a-zA-Z0-9][a-zA-Z0-9.-]*/)?[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?")
_VALUE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?")


def prefer_onprem(labels: Mapping[str, Rule] | None = None, /, **more: Rule) -> dict[str, Any]:
    """Return options for work that runs on your own nodes if they have room, else in a cloud.

    Args:
        labels: Further labels that the node must have on either site, such as
            `{"instance-type": ["p4d.24xlarge", "p5.48xlarge"]}`.
        more: The same as keywords: `accelerator="A100"`.

    Raises:
        ValueError: A label cannot be asked for in this way.
    """
    rules = _selector({**(labels or {}), **more})
    return {
        "label_selector": {"site": "onprem", **rules},
        "fallback_strategy": [{"label_selector": {"site": "cloud", **rules}}],
    }


def onprem_only(labels: Mapping[str, Rule] | None = None, /, **more: Rule) -> dict[str, Any]:
    """Return options for work that must not run in a cloud: it waits, and rents nothing.

    Holds the task or actor itself, not tasks that it starts: those need the option too, or a
    placement group of on-prem bundles that captures child tasks. Arguments and errors as in
    `prefer_onprem`.
    """
    return {"label_selector": {"site": "onprem", **_selector({**(labels or {}), **more})}}


def cloud_only(labels: Mapping[str, Rule] | None = None, /, **more: Rule) -> dict[str, Any]:
    """Return options for work that runs on rented nodes only, as in `provider="aws"`.

    Arguments and errors as in `prefer_onprem`.
    """
    return {"label_selector": {"site": "cloud", **_selector({**(labels or {}), **more})}}


def _selector(rules: Mapping[str, Rule]) -> dict[str, str]:
    if "site" in rules:
        raise ValueError("the function itself decides the label 'site'; leave it out")
    return {key: _condition(key, rule) for key, rule in rules.items()}


def _condition(key: str, rule: Rule) -> str:
    """Return Ray's spelling. Never negated: that would admit nodes without the label."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not a label name; use letters, digits, '-', '_' and '.'")
    if not isinstance(rule, str | Sequence):
        raise ValueError(  # noqa: TRY004  # what all wrong labels raise
            f"label {key}: {rule!r} is not text; write {str(rule)!r}, or a list of such"
        )
    values = [rule] if isinstance(rule, str) else [str(value) for value in rule]
    for value in values:
        if not _VALUE.fullmatch(value):
            raise ValueError(
                f"label {key}: {value!r} is not a value to ask for; write 1 to 63 letters, digits, "
                "'-', '_' and '.', or a list of such (not '!x', which would admit nodes that "
                "lack the label)"
            )
    if not values:
        raise ValueError(f"label {key}: the list of values is empty, so no node could match")
    return values[0] if len(values) == 1 else f"in({','.join(values)})"

"""Where a job's driver may run.

Ray knows no fallback for drivers, so "home first" is decided here, once, when Ray gets the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.core.models import Job, Node, NodeStatus, Shape
from hybrid.core.policy.plan import Host
from hybrid.core.policy.room import fits
from hybrid.core.ports import Clock

# A host that boots, or whose head was restarted, is back long before; a broken one is not.
_GIVEN_UP_AFTER_S = 300.0

# What a configuration may leave out, because Ray counts it on the machine.
_COUNTED_BY_RAY = ("CPU", "memory")


@dataclass
class Absences:
    """How long configured hosts have not been nodes, as far as Ray could be asked."""

    clock: Clock
    _since_s: dict[str, float] = field(default_factory=dict)

    def expected(
        self, nodes: Sequence[Node], hosts: Iterable[Host], *, is_ray_up: bool
    ) -> tuple[Host, ...]:
        """Return the hosts that are not nodes now but may be soon.

        One that stays away for minutes is no longer counted on: its jobs must not wait for it
        while a cloud could run them.
        """
        if not is_ray_up:
            self._since_s.clear()
            return ()
        now_s = self.clock.monotonic_s()
        there = {node.host for node in nodes if node.status is not NodeStatus.DEAD}
        absent = [host for host in hosts if host.name not in there]
        self._since_s = {h.name: self._since_s.get(h.name, now_s) for h in absent}
        return tuple(h for h in absent if now_s - self._since_s[h.name] < _GIVEN_UP_AFTER_S)


def entrypoint_selector(
    job: Job, nodes: Sequence[Node], *, expected: Sequence[Host] = (), has_clouds: bool = True
) -> Mapping[str, str]:
    """Return where a job's driver may run.

    At home if a node there, or a host that will be one, is large enough to hold the driver at
    all, or else in the cloud. A driver that asks for nothing is left to Ray, which runs it on
    the head.

    Args:
        job: What to run.
        nodes: What Ray has.
        expected: Configured hosts that are not nodes yet, or not again.
        has_clouds: Whether there is any cloud. Without one all there can be is home: a host
            that is large enough may be added later.
    """
    if job.spec.site != "any":
        return {"site": job.spec.site}
    need = {
        name: amount
        for name, amount in (
            ("GPU", job.spec.gpus),
            ("CPU", job.spec.cpus),
            ("memory", job.spec.memory_bytes),
        )
        if amount
    }
    if not need:
        return {}
    home = [n for n in nodes if not n.instance_id and n.status is not NodeStatus.DEAD]
    is_home_enough = any(fits(need, node.total) for node in home) or any(
        _will_fit(need, host.shape) for host in expected
    )
    return {"site": "onprem" if is_home_enough or not has_clouds else "cloud"}


def _will_fit(need: Shape, configured: Shape) -> bool:
    """Return whether a host can hold it. What the configuration leaves open counts as enough."""
    told = {n: a for n, a in need.items() if n in configured or n not in _COUNTED_BY_RAY}
    return fits(told, configured)

"""The emulated projects: instances, capacity, quotas, and time that passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.emulators.gcp import shapes
from tests.emulators.gcp.answers import ApiError, OperationFailure, seconds, stamp
from tests.emulators.gcp.faults import Fault
from tests.emulators.gcp.operations import Operations, Outcome
from tests.emulators.gcp.rules import (
    check_insert,
    check_metadata,
    name_of,
)

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str]
"""Project, zone, name."""


@dataclass
class Cloud:
    """The state of the cloud. Every method expects the lock to be held.

    Attributes:
        provision_s, delete_s, stop_s, metadata_s: How long each takes.
        list_lag_s: How long a new instance is missing from lists; `get` always knows it.
        is_listed_early: Whether lists have an instance while its insert is still at work.
        refuses_taken_names: Whether a bulk insert of a name that exists is refused at once, and
            not after the others have been made.
        looks_first: Whether a bulk insert is refused at once for want of stock or quota.
        ends_guests: Whether machines turn themselves off at the end of their lease, as if our
            program ran in them.
        hidden: Names that lists leave out.
        unreachable: Zones that lists cannot reach.
        capacity: (zone, machine type) -> how many more can be had; absent means plenty.
        quotas: (region, metric) -> GPUs allowed; absent means plenty.
        clock_skew_s: How far this cloud's clock is ahead of the machine's.
        clock: The machine's clock, seconds since the epoch.
    """

    provision_s: float = 0.05
    delete_s: float = 0.03
    stop_s: float = 0.03
    metadata_s: float = 0.01
    list_lag_s: float = 0.0
    is_listed_early: bool = True
    refuses_taken_names: bool = True
    looks_first: bool = True
    ends_guests: bool = True
    hidden: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    capacity: dict[tuple[str, str], int] = field(default_factory=dict)
    quotas: dict[tuple[str, str], int] = field(default_factory=dict)
    clock_skew_s: float = 0.0
    clock: Callable[[], float] = time.time
    operations: Operations = field(default_factory=Operations)
    instances: dict[Key, Json] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _made_at_s: dict[Key, float] = field(default_factory=dict)
    _count: int = 5_000

    def now_s(self) -> float:
        return self.clock() + self.clock_skew_s

    def settle(self) -> None:
        """Let everything happen that is due by now."""
        now_s = self.now_s()
        self.operations.settle(now_s)
        for key, instance in list(self.instances.items()):
            if instance["status"] != "RUNNING" or self.operations.running(instance["selfLink"]):
                continue
            ends = instance.get("resourceStatus", {}).get("scheduling", {})
            if "terminationTimestamp" in ends and seconds(ends["terminationTimestamp"]) <= now_s:
                self.end(key, kind="compute.instances.deleteByTimeLimit")
            elif self.ends_guests and shapes.guest_expiry_s(instance) <= now_s:
                self.stop(key, kind="compute.instances.guestTerminate")

    # --- requests -------------------------------------------------------------------------

    def insert(
        self, base: str, zone: str, body: Json, request_id: str, take: Callable[[], Fault | None]
    ) -> Json:
        project = name_of(base)
        check_insert(project, zone, body)
        if before := self.operations.repeated("insert", zone, request_id):
            return before
        fault = take()
        key = (project, zone, body["name"])
        link = f"{base}/zones/{zone}/instances/{body['name']}"
        if key in self.instances or self.operations.running(link):
            raise ApiError(409, f"The resource '{shapes.path(link)}' already exists")
        failure = (fault.failure() if fault else None) or self.refusal(zone, body)
        leaves = bool(fault and fault.leaves)
        _, done = self.make(
            base, zone, body, link, is_listed=failure is None or leaves, leaves=leaves
        )
        now_s = self.now_s()
        takes_s = self.provision_s if fault is None or fault.takes_s is None else fault.takes_s
        return self.operations.start(
            "insert",
            target=link,
            base=base,
            zone=zone,
            now_s=now_s,
            takes_s=takes_s,
            failure=failure,
            on_done=done,
            request_id=request_id,
        )

    def make(
        self,
        base: str,
        zone: str,
        body: Json,
        link: str,
        *,
        is_listed: bool,
        leaves: bool = False,
    ) -> tuple[Key, Outcome]:
        """Begin an instance; return it, and what is to be done when its operation ends."""
        key = (name_of(base), zone, body["name"])
        instance = self._new(base, zone, body, link)
        if is_listed or self.is_listed_early:
            self.instances[key] = instance
            self._made_at_s[key] = self.now_s()

        def done(failed: OperationFailure | None) -> None:
            if failed and not leaves:
                self.instances.pop(key, None)
                return
            instance["status"] = "RUNNING"
            instance["lastStartTimestamp"] = stamp(self.now_s())
            instance["resourceStatus"] = shapes.resource_status(instance, self.now_s())

        return key, done

    def get(self, key: Key) -> Json:
        if key not in self.instances:
            project, zone, name = key
            where = f"projects/{project}/zones/{zone}/instances/{name}"
            raise ApiError(404, f"The resource '{where}' was not found")
        return self.instances[key]

    def listed(self, project: str) -> list[tuple[str, Json]]:
        """Return zone and instance of all that lists show now, in order."""
        now_s = self.now_s()
        return [
            (zone, instance)
            for (owner, zone, name), instance in sorted(self.instances.items())
            if owner == project
            and name not in self.hidden
            and now_s - self._made_at_s[owner, zone, name] >= self.list_lag_s
        ]

    def delete(self, key: Key, fault: Fault | None = None) -> Json:
        instance = self.get(key)
        self._check_ready(instance)
        if instance.get("deletionProtection"):
            where = shapes.path(instance["selfLink"])
            raise ApiError(
                400, f"Invalid resource usage: 'Resource cannot be deleted: {where} is protected.'"
            )
        return self.end(key, kind="delete", fault=fault)

    def end(self, key: Key, *, kind: str, fault: Fault | None = None) -> Json:
        """Begin to delete an instance, for whatever reason."""
        instance = self.instances[key]
        before = instance["status"]
        instance["status"] = "STOPPING"

        def done(failed: OperationFailure | None) -> None:
            if failed:
                instance["status"] = before
            else:
                self.instances.pop(key, None)

        return self._work(key, kind, self.delete_s, done, fault)

    def stop(self, key: Key, *, kind: str = "stop") -> Json:
        """Begin to stop an instance: it stays, without its GPUs, and its disk costs money."""
        instance = self.get(key)
        self._check_ready(instance)
        instance["status"] = "STOPPING"

        def done(_: OperationFailure | None) -> None:
            instance["status"] = "TERMINATED"
            instance["lastStopTimestamp"] = stamp(self.now_s())
            instance.get("resourceStatus", {}).pop("scheduling", None)

        return self._work(key, kind, self.stop_s, done, None)

    def preempt(self, key: Key) -> None:
        """Take a spot instance back."""
        action = self.get(key)["scheduling"].get("instanceTerminationAction", "STOP")
        if action == "DELETE":
            self.end(key, kind="compute.instances.preempted")
        else:
            self.stop(key, kind="compute.instances.preempted")

    def set_metadata(self, key: Key, body: Json, fault: Fault | None) -> Json:
        instance = self.get(key)
        self._check_ready(instance)
        if body.get("fingerprint") != instance["metadata"]["fingerprint"]:
            raise ApiError(412, "Supplied fingerprint does not match current metadata fingerprint.")
        for message in check_metadata(body):
            raise ApiError(400, message)

        def done(failed: OperationFailure | None) -> None:
            if not failed:
                instance["metadata"] = shapes.metadata(body)

        return self._work(key, "setMetadata", self.metadata_s, done, fault)

    # --- parts ----------------------------------------------------------------------------

    def _work(self, key: Key, kind: str, takes_s: float, done: Any, fault: Fault | None) -> Json:
        link = self.instances[key]["selfLink"]
        return self.operations.start(
            kind,
            target=link,
            base=link.partition("/zones/")[0],
            zone=key[1],
            now_s=self.now_s(),
            takes_s=takes_s if fault is None or fault.takes_s is None else fault.takes_s,
            failure=fault.failure() if fault else None,
            on_done=done,
        )

    def _check_ready(self, instance: Json) -> None:
        if self.operations.running(instance["selfLink"]):
            text = f"The resource '{shapes.path(instance['selfLink'])}' is not ready"
            raise ApiError(400, text, "resourceNotReady")

    def refusal(self, zone: str, body: Json, machines: int = 1) -> OperationFailure | None:
        """Return why there are no such machines to be had, and take them if there are."""
        machine_type = name_of(body["machineType"])
        region, metric, count = shapes.gpus(zone, body)
        limit = self.quotas.get((region, metric))
        if limit is not None and self._used(region, metric) + count * machines > limit:
            text = f"Quota '{metric}' exceeded.  Limit: {limit:.1f} in region {region}."
            quota = {"metricName": metric, "limit": limit, "dimensions": {"region": region}}
            return OperationFailure(
                "QUOTA_EXCEEDED", text, 403, "FORBIDDEN", [{"quotaInfo": quota}]
            )
        left = self.capacity.get((zone, machine_type))
        if left is not None and left < machines:
            text = f"The zone '{zone}' does not have enough resources available to fulfill the "
            text += "request.  Try a different zone, or try again later."
            return OperationFailure("ZONE_RESOURCE_POOL_EXHAUSTED", text, 503)
        if left is not None:
            self.capacity[zone, machine_type] = left - machines
        return None

    def _used(self, region: str, metric: str) -> int:
        rented = ((zone, i) for (_, zone, _), i in self.instances.items() if shapes.is_on(i))
        found = (shapes.gpus(zone, instance) for zone, instance in rented)
        return sum(count for where, what, count in found if (where, what) == (region, metric))

    def _new(self, base: str, zone: str, body: Json, link: str) -> Json:
        self._count += 1
        now_s = self.now_s()
        instance = deepcopy(body) | {
            "kind": "compute#instance",
            "id": str(8_000_000_000_000_000_000 + self._count),
            "status": "PROVISIONING",
            "zone": f"{base}/zones/{zone}",
            "machineType": f"{base}/{body['machineType']}",
            "selfLink": link,
            "creationTimestamp": stamp(now_s),
            "labelFingerprint": shapes.fingerprint(body.get("labels", {})),
            "metadata": shapes.metadata(body.get("metadata", {})),
            "fingerprint": shapes.fingerprint(body),
            "cpuPlatform": "Unknown CPU Platform",
            "startRestricted": False,
            "deletionProtection": bool(body.get("deletionProtection")),
        }
        for number, interface in enumerate(instance["networkInterfaces"]):
            interface |= {"name": f"nic{number}", "networkIP": f"10.128.0.{self._count % 250}"}
        return instance

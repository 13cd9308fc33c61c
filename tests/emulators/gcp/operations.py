"""Operations: what was accepted, what becomes of it, and when."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.emulators.gcp.answers import ApiError, OperationFailure, stamp

Outcome = Callable[[OperationFailure | None], None]


@dataclass
class Operation:
    """A piece of work that takes time.

    Attributes:
        done_at_s: When it ends.
        failure: What it will end with.
        on_done: Changes the resource when it ends.
    """

    resource: dict[str, Any]
    done_at_s: float
    failure: OperationFailure | None
    on_done: Outcome

    @property
    def is_done(self) -> bool:
        return bool(self.resource["status"] == "DONE")

    @property
    def target(self) -> str:
        return str(self.resource["targetLink"])


@dataclass
class Operations:
    """All operations, by name, and the request ids they answer to."""

    by_name: dict[str, Operation] = field(default_factory=dict)
    _by_request: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _count: int = 1_000

    def start(
        self,
        kind: str,
        *,
        target: str,
        base: str,
        zone: str,
        now_s: float,
        takes_s: float,
        failure: OperationFailure | None = None,
        on_done: Outcome = lambda _: None,
        request_id: str = "",
        group: str = "",
    ) -> dict[str, Any]:
        """Begin one and return it as the cloud shows it."""
        self._count += 1
        name = f"operation-{int(now_s * 1000)}-{uuid.uuid4().hex[:13]}"
        resource: dict[str, Any] = {
            "kind": "compute#operation",
            "id": str(7_000_000_000_000_000_000 + self._count),
            "name": name,
            "operationType": kind,
            "zone": f"{base}/zones/{zone}",
            "targetLink": target,
            "status": "RUNNING",
            "progress": 0,
            "user": "hybrid-launcher",
            "insertTime": stamp(now_s),
            "startTime": stamp(now_s),
            "selfLink": f"{base}/zones/{zone}/operations/{name}",
        }
        if group:
            resource["operationGroupId"] = group
        if request_id:
            resource["clientOperationId"] = request_id
            self._by_request[kind, zone, request_id] = name
        self.by_name[name] = Operation(resource, now_s + takes_s, failure, on_done)
        return resource

    def repeated(self, kind: str, zone: str, request_id: str) -> dict[str, Any] | None:
        """Return the operation that a request id began before. Raises `ApiError`."""
        if not request_id:
            return None
        try:
            is_zero = uuid.UUID(request_id).int == 0
        except ValueError:
            is_zero = True
        if is_zero:
            text = f"Invalid value for field 'requestId': '{request_id}'. Must be a non-zero UUID."
            raise ApiError(400, text)
        name = self._by_request.get((kind, zone, request_id))
        return self.by_name[name].resource if name else None

    def forget_requests(self) -> None:
        """Forget the request ids, as the cloud does after a while; names stay taken."""
        self._by_request.clear()

    def find(self, name: str) -> Operation:
        """Return one. Raises `ApiError`."""
        if name not in self.by_name:
            raise ApiError(404, f"The resource 'operations/{name}' was not found")
        return self.by_name[name]

    def running(self, target: str) -> Operation | None:
        """Return what is at work on a resource."""
        found = (o for o in self.by_name.values() if o.target == target and not o.is_done)
        return next(found, None)

    def of(self, kind: str) -> list[Operation]:
        """Return the operations of a kind, also those that are over."""
        return [o for o in self.by_name.values() if o.resource["operationType"] == kind]

    def settle(self, now_s: float) -> None:
        """End what is due."""
        for operation in list(self.by_name.values()):
            if operation.is_done or now_s < operation.done_at_s:
                continue
            operation.resource |= {"status": "DONE", "progress": 100, "endTime": stamp(now_s)}
            if operation.failure:
                operation.resource |= operation.failure.fields()
            operation.on_done(operation.failure)

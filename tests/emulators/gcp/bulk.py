"""`instances.bulkInsert`: many instances in one request, at least `minCount` of them or none.

After Google's description of the method and its page "Troubleshooting bulk VM creation": what
cannot be had is refused at once when that can be known, and otherwise everything that was made is
taken back before the operation ends.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.emulators.gcp.answers import ApiError, OperationFailure
from tests.emulators.gcp.cloud import Cloud, Json
from tests.emulators.gcp.faults import Fault
from tests.emulators.gcp.rules import check_bulk, check_insert, name_of

_MOST_AT_ONCE = 10  # operations of this kind
_NOT_WHOLE = "VM_MIN_COUNT_NOT_REACHED"


def bulk_insert(
    cloud: Cloud,
    base: str,
    zone: str,
    body: Json,
    request_id: str,
    take: Callable[[], Fault | None],
) -> Json:
    """Begin to make instances; see `Cloud.insert`."""
    project = name_of(base)
    check_bulk(body)
    instances = [_instance(zone, name, body) for name in body["perInstanceProperties"]]
    for instance in instances:
        check_insert(project, zone, instance)
    if before := cloud.operations.repeated("bulkInsert", zone, request_id):
        return before
    at_work = [o for o in cloud.operations.of("bulkInsert") if not o.is_done]
    if len(at_work) >= _MOST_AT_ONCE:
        raise ApiError(403, "Rate Limit Exceeded", "rateLimitExceeded")
    fault = take()
    failure = fault.failure() if fault else None
    taken = [i for i in instances if (project, zone, i["name"]) in cloud.instances]
    if taken and cloud.refuses_taken_names:
        where = f"projects/{project}/zones/{zone}/instances/{taken[0]['name']}"
        raise ApiError(409, f"The resource '{where}' already exists")
    if taken:
        failure = OperationFailure("RESOURCE_ALREADY_EXISTS", "a name is taken", 409)
    if failure is None:
        failure = _shortage(cloud, zone, instances)
    new = [instance for instance in instances if instance not in taken]
    return _begin(cloud, base, zone, new, request_id, fault or Fault(), failure)


def _instance(zone: str, name: str, body: Json) -> Json:
    """Return what one of the instances would be asked for alone."""
    instance = {"name": name, **deepcopy(body["instanceProperties"])}
    instance["machineType"] = f"zones/{zone}/machineTypes/{instance['machineType']}"
    for disk in instance["disks"]:
        parameters = disk.get("initializeParams", {})
        if "diskType" in parameters:
            parameters["diskType"] = f"zones/{zone}/diskTypes/{parameters['diskType']}"
    for gpu in instance.get("guestAccelerators", ()):
        gpu["acceleratorType"] = f"zones/{zone}/acceleratorTypes/{gpu['acceleratorType']}"
    return instance


def _shortage(cloud: Cloud, zone: str, instances: list[Json]) -> OperationFailure | None:
    """Return what there is too little of, for a failure later; or raise that at once."""
    failure = cloud.refusal(zone, instances[0], len(instances))
    if failure is None or not cloud.looks_first:
        return failure
    if failure.http_status == 403:
        raise ApiError(403, failure.message, "quotaExceeded")
    raise ApiError(503, failure.message, "insufficientCapacity")


def _begin(
    cloud: Cloud,
    base: str,
    zone: str,
    instances: list[Json],
    request_id: str,
    fault: Fault,
    failure: OperationFailure | None,
) -> Json:
    now_s = cloud.now_s()
    group = str(uuid.uuid4())
    status: dict[str, Any] = {"status": "CREATING", "targetVmCount": len(instances)}
    facts: Json = {
        "base": base,
        "zone": zone,
        "now_s": now_s,
        "takes_s": cloud.provision_s if fault.takes_s is None else fault.takes_s,
        "group": group,
    }
    keys = []
    for number, body in enumerate(instances):
        link = f"{base}/zones/{zone}/instances/{body['name']}"
        key, on_done = cloud.make(
            base, zone, body, link, is_listed=failure is None or fault.leaves > 0
        )
        keys.append(key)
        # Of a gang that fails it is one machine that cannot be had.
        own = failure if number == 0 else None
        cloud.operations.start("insert", target=link, failure=own, on_done=on_done, **facts)

    def done(failed: OperationFailure | None) -> None:
        gone = keys[: len(keys) - fault.leaves] if failed else []
        for key in gone:
            cloud.instances.pop(key, None)
        made = len(keys) - len(gone)
        status.update({"status": "DONE", "createdVmCount": made, "deletedVmCount": len(gone)})

    resource = cloud.operations.start(
        "bulkInsert",
        target=f"{base}/zones/{zone}/instances",
        failure=_of_all(failure, len(instances)) if failure else None,
        on_done=done,
        request_id=request_id,
        **facts,
    )
    location = {f"zones/{zone}": status}
    resource["instancesBulkInsertOperationMetadata"] = {"perLocationStatus": location}
    return resource


def _of_all(failure: OperationFailure, count: int) -> OperationFailure:
    """Return what the operation says: first that they are not enough, then why."""
    text = f"Requested minimum count of {count} VMs could not be created."
    causes = [] if failure.code == _NOT_WHOLE else failure.errors()
    return OperationFailure(_NOT_WHOLE, text, failure.http_status, causes=causes)

"""Ray's own scheduler of the installed version, asked without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ray.autoscaler.v2.instance_manager.config import NodeTypeConfig
from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
from ray.autoscaler.v2.schema import AutoscalerInstance
from ray.autoscaler.v2.utils import ResourceRequestUtil
from ray.core.generated.autoscaler_pb2 import NodeState, NodeStatus
from ray.core.generated.instance_manager_pb2 import Instance

from hybrid.sim.baselines.ray_packing import Room

MOST_NODES = 100_000


def request_of(
    requests: Sequence[float], there: Sequence[Room], sizes: Sequence[float]
) -> SchedulingRequest:
    """Return what Ray's autoscaler would be asked: GPUs only, one node type for each size."""
    return request_for(
        [{"GPU": gpus} for gpus in requests], {size: {"GPU": size} for size in sizes}, there
    )


def request_for(
    shapes: Sequence[Mapping[str, float]],
    nodes: Mapping[float, Mapping[str, float]],
    there: Sequence[Room] = (),
) -> SchedulingRequest:
    """Return the same for requests of any shape, and nodes by the GPUs that each has."""
    types = {
        _type(size): NodeTypeConfig(
            name=_type(size),
            resources=dict(resources),
            min_worker_nodes=0,
            max_worker_nodes=MOST_NODES,
        )
        for size, resources in nodes.items()
    }
    return SchedulingRequest(
        node_type_configs=types,
        max_num_nodes=MOST_NODES,
        resource_requests=ResourceRequestUtil.group_by_count(
            [ResourceRequestUtil.make(dict(shape)) for shape in shapes]
        ),
        gang_resource_requests=[],
        cluster_resource_constraints=[],
        current_instances=[_node(number, room) for number, room in enumerate(there)],
        idle_timeout_s=None,
        disable_launch_config_check=True,
    )


def launches_of(request: SchedulingRequest) -> Counter[float]:
    """Return how many nodes of each size Ray launches."""
    reply = ResourceDemandScheduler(None).schedule(request)
    return Counter(
        {
            float(each.instance_type.removeprefix("gpu-")): each.count
            for each in reply.to_launch
            if each.count
        }
    )


def _type(size: float) -> str:
    return f"gpu-{size:g}"


def _node(number: int, room: Room) -> AutoscalerInstance:
    instance_id = f"i-{number}"
    state = NodeState(
        node_id=instance_id.encode(),
        ray_node_type_name=_type(room.total),
        available_resources={"GPU": room.free},
        total_resources={"GPU": room.total},
        status=NodeStatus.RUNNING,
        instance_id=instance_id,
    )
    instance = Instance(
        instance_id=instance_id,
        instance_type=_type(room.total),
        status=Instance.RAY_RUNNING,
        cloud_instance_id=instance_id,
        node_id=instance_id,
    )
    return AutoscalerInstance(ray_node=state, im_instance=instance, cloud_instance_id=instance_id)
